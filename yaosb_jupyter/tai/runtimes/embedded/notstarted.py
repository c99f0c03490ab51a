"""A command that was refused before anything was started."""

from __future__ import annotations

from typing import NoReturn

from yaosb_jupyter.errors import CommandNotFoundError
from yaosb_jupyter.tai.runtimes.base import ExecStream


class NotStarted(ExecStream):
    def __init__(self, error: CommandNotFoundError) -> None:
        self._error = error

    async def receive(self) -> None:
        return None

    async def send(self, data: bytes) -> None: ...

    async def close_stdin(self) -> None: ...

    async def wait(self) -> NoReturn:
        raise self._error

    async def signal(self, signum: int) -> None: ...

    async def cancel(self, grace: float = 2.0) -> None: ...

    async def aclose(self) -> None: ...
