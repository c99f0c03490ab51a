"""`AsyncCommand`: a command in the background, as programs use it."""

from __future__ import annotations

from typing import Any, overload

from yaosb_jupyter.core.commands.command import CommandStream, check_grace, check_signal
from yaosb_jupyter.core.service import Service
from yaosb_jupyter.errors import NotFoundError
from yaosb_jupyter.types import CommandInfo, ExitStatus


class AsyncCommand:
    """A handle on a command of a sandbox, made by `AsyncSandbox.spawn` and `AsyncSandbox.command`.

    The command goes on whatever becomes of the handle, its process or the manager, until it ends, is killed, or the
    sandbox stops. Every call raises `NotFoundError` once the sandbox does not know it any more.
    """

    def __init__(self, service: Service, sandbox_uid: str, command_id: str) -> None:
        self._service = service
        self._sandbox = sandbox_uid
        self._id = command_id

    @property
    def id(self) -> str:
        return self._id

    def __repr__(self) -> str:
        return f"<AsyncCommand {self._id!r} in sandbox {self._sandbox}>"

    async def info(self) -> CommandInfo:
        """What it is now."""
        for info in await self._service.commands(self._sandbox):
            if info.id == self._id:
                return info
        raise NotFoundError(
            f"no command {self._id!r} is known in it",
            sandbox=self._sandbox,
            hint="the last 32 that ended in the background are kept, until the sandbox stops",
        )

    @overload
    def attach(self, since: int = 0, *, encoding: str = "utf-8", errors: str = "replace") -> CommandStream[str]: ...

    @overload
    def attach(self, since: int = 0, *, encoding: None, errors: str = "replace") -> CommandStream[bytes]: ...

    def attach(self, since: int = 0, *, encoding: str | None = "utf-8", errors: str = "replace") -> CommandStream[Any]:
        """What it wrote from an offset on, what it writes, and its end, as events.

        The offset counts the bytes of both outputs; `CommandStream.offset` tells where one got to, and
        `CommandStream.lost` how much was dropped before it could be read: of each command the last MiB is kept. Any
        number may follow; closing the stream leaves the command alone.
        """
        return CommandStream(
            lambda: self._service.attach(self._sandbox, self._id, since), encoding=encoding, errors=errors
        )

    async def wait(self) -> ExitStatus:
        """Its exit status, when it has ended."""
        stream = await self._service.attach(self._sandbox, self._id, None)
        try:
            return await stream.wait()
        finally:
            await stream.aclose()

    async def signal(self, signum: int) -> None:
        """Sends a signal to it and all its descendants. Nothing happens after its end."""
        check_signal(signum)
        await self._service.control(self._sandbox, self._id, signal=signum)

    async def kill(self, grace: float = 2.0) -> ExitStatus:
        """Ends it and all its descendants: SIGTERM, after ``grace`` seconds SIGKILL. Returns when they are gone."""
        check_grace(grace)
        await self._service.control(self._sandbox, self._id, grace=grace)
        return await self.wait()
