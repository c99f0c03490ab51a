"""A command that a guest runs, as its caller sees it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from yaosb_jupyter.errors import CommandNotFoundError, NotRunningError, ProtocolError, SandboxError, SandboxLostError
from yaosb_jupyter.guest import frames
from yaosb_jupyter.link.connection import RemoteError, Stream
from yaosb_jupyter.tai.runtimes.base import ExecStream
from yaosb_jupyter.types import ExecChannel, ExitStatus

GUEST_GRACE = 2.0
"""How long the guest waits between SIGTERM and SIGKILL at a timeout."""
BACKSTOP = 5.0
"""How much longer the host waits before it takes the guest for broken."""

_CHANNELS = {frames.DATA: ExecChannel.STDOUT, frames.DATA_ERR: ExecChannel.STDERR}


class _Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a guest may tell of a command's end; everything else is refused."""

    exit_code: int
    signal: int | None
    duration: float
    timed_out: bool
    peak_memory: int = 0
    cpu_time: float = 0.0


class GuestExecStream(ExecStream):
    """A stream of the link, in the terms of commands.

    The guest is not trusted: where it does not end a command in time, ``kill`` ends the whole environment.
    """

    def __init__(
        self, stream: Stream, *, sandbox: str, timeout: float | None, kill: Callable[[], Awaitable[None]]
    ) -> None:
        self._stream = stream
        self._sandbox = sandbox
        self._kill = kill
        self._outcome: ExitStatus | SandboxError | None = None
        self._cancelled = False
        self._backstop = asyncio.ensure_future(self._watch(timeout)) if timeout else None

    async def receive(self) -> tuple[ExecChannel, bytes] | None:
        while self._outcome is None:
            try:
                item = await self._stream.receive()
                if item is None:
                    self._settle(await self._result())
                elif (channel := _CHANNELS.get(item[0])) is not None:
                    return channel, item[1]
            except (ConnectionError, ProtocolError) as error:
                self._settle(self._lost(error))
        if isinstance(self._outcome, SandboxLostError):
            raise self._outcome
        return None

    async def send(self, data: bytes) -> None:
        await self._stream.send(data)

    async def close_stdin(self) -> None:
        await self._stream.send_eof()

    async def wait(self) -> ExitStatus:
        while await self.receive() is not None:
            pass
        assert self._outcome is not None
        if isinstance(self._outcome, SandboxError):
            raise self._outcome
        return self._outcome

    async def signal(self, signum: int) -> None:
        await self._stream.send_message({"signal": signum})

    async def cancel(self, grace: float = 2.0) -> None:
        if self._outcome is not None:
            return
        with contextlib.suppress(SandboxError):
            try:
                async with asyncio.timeout(grace + BACKSTOP):
                    await self._stream.send_message({"cancel": grace})
                    await self.wait()
            except TimeoutError:
                await self._kill()
                await self.wait()

    async def _watch(self, timeout: float) -> None:
        pause = timeout + GUEST_GRACE + BACKSTOP
        while True:
            await asyncio.sleep(pause)
            if not self._stream.unread:
                break
            pause = BACKSTOP  # the caller is slow, not the guest
        if not self._stream.closed:
            await self._kill()

    async def _result(self) -> ExitStatus | SandboxError:
        try:
            told = await self._stream.result()
        except RemoteError as error:
            return self._refused(error)
        try:
            result = msgspec.convert(told, _Result)
        except msgspec.ValidationError as error:
            return self._lost(error)
        return ExitStatus(
            exit_code=result.exit_code & 0xFF,
            signal=result.signal,
            duration=result.duration,
            timed_out=result.timed_out,
        )

    def _refused(self, error: RemoteError) -> SandboxError:
        match error.code:
            case "CommandNotFoundError":
                code = error.fields.get("exit_code")
                return CommandNotFoundError(str(error), exit_code=126 if code == 126 else 127, sandbox=self._sandbox)
            case "NotRunningError":
                return NotRunningError(str(error), sandbox=self._sandbox)
        return ProtocolError(f"the guest refused the command: {error}", sandbox=self._sandbox)

    def _lost(self, cause: Exception) -> SandboxLostError:
        lost = SandboxLostError(
            f"the sandbox vanished while a command ran ({cause})",
            sandbox=self._sandbox,
            hint="it was stopped or removed, or its processes were killed; see its status",
        )
        lost.__cause__ = cause
        return lost

    def _settle(self, outcome: ExitStatus | SandboxError) -> None:
        self._outcome = outcome
        if self._backstop is not None:
            self._backstop.cancel()


def exec_request(
    exec_id: str, argv: tuple[str, ...], *, cwd: str, env: Mapping[str, str], timeout: float | None, stdin: bool
) -> dict[str, Any]:
    """The arguments of the operation ``exec``."""
    return {
        "exec_id": exec_id,
        "argv": list(argv),
        "cwd": cwd,
        "env": dict(env),
        "timeout": timeout or 0,
        "stdin": stdin,
    }
