"""What completion knows of the sandboxes: what the manager says, if it says it at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import TimeoutError as NotInTime
from typing import TypeVar

from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.jupyter.completion import Known
from yaosb_jupyter.jupyter.foreground import Start
from yaosb_jupyter.jupyter.scriptfiles import is_script
from yaosb_jupyter.jupyter.session import Session

T = TypeVar("T")

_PATIENCE = 0.5


class SessionKnown(Known):
    """Asks the session's manager; never makes a connection, never waits long."""

    def __init__(self, session: Session, start: Start) -> None:
        self._session = session
        self._start = start

    def ids(self) -> Sequence[str]:
        return [info.id for info in self._ask(lambda manager: manager.list())]

    def images(self) -> Sequence[str]:
        return sorted({info.image for info in self._ask(lambda manager: manager.list()) if info.image})

    def pools(self) -> Sequence[str]:
        return [pool.name for pool in self._ask(lambda manager: manager.pools())]

    def entries(self, ref: str, directory: str) -> Sequence[str]:
        async def names(_: AsyncManager) -> list[str]:
            files = await (await self._session.sandbox(ref)).files.list(directory)
            return [f"{file.name}/" if file.is_dir else file.name for file in files if not is_script(file.name)]

        return self._ask(names)

    def _ask(self, question: Callable[[AsyncManager], Awaitable[Sequence[T]]]) -> Sequence[T]:
        manager = self._session.connected
        if manager is None:
            return []
        future = self._start(lambda: question(manager))
        try:
            return future.result(_PATIENCE)
        except (SandboxError, NotInTime):
            future.cancel()
            return []
