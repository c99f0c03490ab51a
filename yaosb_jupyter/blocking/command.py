"""`Command`: a command in the background, as programs that do not use asyncio use it."""

from __future__ import annotations

from typing import Any, cast, overload

from yaosb_jupyter.blocking.face import Face
from yaosb_jupyter.blocking.loop import Loop
from yaosb_jupyter.blocking.stream import CommandStream
from yaosb_jupyter.core.commands.background import AsyncCommand
from yaosb_jupyter.types import CommandInfo, ExitStatus


class Command(Face):
    """A handle on a command of a sandbox; made by `Sandbox`. See `AsyncCommand`, whose every call this waits for."""

    def __init__(self, loop: Loop, inner: AsyncCommand) -> None:
        super().__init__(loop)
        self._inner = inner

    @property
    def id(self) -> str:
        return self._inner.id

    def __repr__(self) -> str:
        return repr(self._inner).replace("<Async", "<", 1)

    def info(self) -> CommandInfo:
        """What it is now."""
        return self._run(self._inner.info)

    @overload
    def attach(self, since: int = 0, *, encoding: str = "utf-8", errors: str = "replace") -> CommandStream[str]: ...

    @overload
    def attach(self, since: int = 0, *, encoding: None, errors: str = "replace") -> CommandStream[bytes]: ...

    def attach(self, since: int = 0, *, encoding: str | None = "utf-8", errors: str = "replace") -> CommandStream[Any]:
        """What it wrote from an offset on, what it writes, and its end, as events; see `AsyncCommand.attach`."""
        inner = self._inner.attach(since, encoding=cast(Any, encoding), errors=errors)
        return CommandStream(self._loop, inner)

    def wait(self) -> ExitStatus:
        """Its exit status, when it has ended."""
        return self._run(self._inner.wait)

    def signal(self, signum: int) -> None:
        """Sends a signal to it and all its descendants. Nothing happens after its end."""
        self._run(lambda: self._inner.signal(signum))

    def kill(self, grace: float = 2.0) -> ExitStatus:
        """Ends it and all its descendants: SIGTERM, after ``grace`` seconds SIGKILL. Returns when they are gone."""
        return self._run(lambda: self._inner.kill(grace))
