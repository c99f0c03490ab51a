"""A command as its caller holds it: in use until it ends, and with it a one-shot sandbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from signal import SIGKILL, SIGTERM
from typing import Protocol

from yaosb_jupyter.core.commands.forwarding import Chunk, ForwardingStream
from yaosb_jupyter.core.tasks import Tasks
from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.options import TerminalSize
from yaosb_jupyter.tai.runtimes.base import ExecStream
from yaosb_jupyter.types import ExitStatus

_KILLED = frozenset({SIGKILL, SIGTERM, 128 + SIGKILL, 128 + SIGTERM})


class CommandUse(Protocol):
    """What the sandbox is told of its command."""

    async def ended(self) -> None:
        """The command has ended, however; called once."""

    async def lost(self, cause: SandboxError | None) -> SandboxError | None:
        """What to tell instead of ``cause``, or of a death by signal, where the sandbox is not running any more."""

    def naming(self) -> AbstractContextManager[None]:
        """What the body raises names the sandbox as its caller does."""


class TrackedStream(ForwardingStream):
    def __init__(self, inner: ExecStream, use: CommandUse, tasks: Tasks) -> None:
        self._inner = inner
        self._use = use
        self._tasks = tasks
        self._status: ExitStatus | None = None
        self._error: SandboxError | None = None
        self._over = False

    async def receive(self) -> Chunk | None:
        try:
            chunk = await self._inner.receive()
        except SandboxError as error:
            await self._fail(error)
            raise self._error or error from error
        if chunk is None:
            await self._settle()
        return chunk

    async def send(self, data: bytes) -> None:
        with self._use.naming():
            await self._inner.send(data)

    async def close_stdin(self) -> None:
        with self._use.naming():
            await self._inner.close_stdin()

    async def wait(self) -> ExitStatus:
        await self._settle()
        if self._error is not None:
            raise self._error
        assert self._status is not None
        return self._status

    async def signal(self, signum: int) -> None:
        with self._use.naming():
            await self._inner.signal(signum)

    async def resize(self, size: TerminalSize) -> None:
        with self._use.naming():
            await self._inner.resize(size)

    async def cancel(self, grace: float = 2.0) -> None:
        if not self._over:
            await self._tasks.finish(self._finish(lambda: self._inner.cancel(grace)), "ending a command")
            return
        with self._use.naming():  # what it left behind
            await self._inner.cancel(grace)

    async def aclose(self) -> None:
        if not self._over:
            await self._tasks.finish(self._finish(self._inner.aclose), "letting go of a command")

    async def _finish(self, end: Callable[[], Awaitable[None]]) -> None:
        try:
            with self._use.naming():
                await end()
        finally:
            await self._end()

    async def _settle(self) -> None:
        """Takes the exit status, then lets the sandbox know: a one-shot is gone when its result is given."""
        if self._status is not None or self._error is not None:
            return
        try:
            status = await self._inner.wait()
        except SandboxError as error:
            await self._fail(error)
            return
        if status.exit_code in _KILLED or status.signal in _KILLED:
            self._error = None if status.timed_out else await self._use.lost(None)
        self._status = status
        await self._end()

    async def _fail(self, error: SandboxError) -> None:
        self._error = await self._use.lost(error) or error
        await self._end()

    async def _end(self) -> None:
        if not self._over:
            self._over = True
            await self._tasks.finish(self._use.ended(), "ending the use of a sandbox")
