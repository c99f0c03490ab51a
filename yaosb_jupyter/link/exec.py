"""A command that a guest runs, as its caller sees it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import Awaitable, Callable
from typing import Annotated, Protocol

import msgspec

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.errors import (
    CommandNotFoundError,
    InvalidOptionError,
    LimitExceededError,
    NotFoundError,
    NotRunningError,
    ProtocolError,
    SandboxError,
    SandboxLostError,
    UnavailableError,
)
from yaosb_jupyter.guest import frames
from yaosb_jupyter.link.patience import Resting
from yaosb_jupyter.link.resume import Conversation
from yaosb_jupyter.link.stream import RemoteError
from yaosb_jupyter.options import TerminalSize
from yaosb_jupyter.tai.outputpipe import OutputPipe
from yaosb_jupyter.tai.runtimes.base import ExecStream
from yaosb_jupyter.types import ExitStatus

GUEST_GRACE = 2.0
"""How long the guest waits between SIGTERM and SIGKILL at a timeout."""
BACKSTOP = 5.0
"""How much longer the host waits before it takes the guest for broken."""
MOST_LEFT = 1 << 23
"""More output than can be under way when a command has been ended, in bytes."""
MOST_AWAY = 60.0
"""How long the link may be broken when a command is due to end."""

_FULL = "end some of its processes (kill_process), or stop and start it"

_CHANNELS = {frames.DATA: ExecChannel.STDOUT, frames.DATA_ERR: ExecChannel.STDERR}


_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a guest may tell of a command's end; everything else is refused."""

    exit_code: int
    signal: Annotated[int, msgspec.Meta(ge=1, le=64)] | None
    duration: _Seconds
    timed_out: bool
    peak_memory: Annotated[int, msgspec.Meta(ge=0, le=1 << 60)] = 0
    cpu_time: _Seconds = 0.0
    out_of_memory: bool = False


def exit_status(told: CommandResult) -> ExitStatus:
    return ExitStatus(
        exit_code=told.exit_code & 0xFF,
        signal=told.signal,
        duration=told.duration,
        timed_out=told.timed_out,
        peak_memory=told.peak_memory,
        cpu_time=told.cpu_time,
        out_of_memory=told.out_of_memory,
    )


def refused(error: RemoteError, sandbox: str) -> SandboxError:
    """The guest's refusal as an error of ours."""
    match error.code:
        case "CommandNotFoundError":
            return _not_started(error, sandbox)
        case "UnavailableError":
            return UnavailableError(str(error)[:500], sandbox=sandbox, hint=_FULL)
        case "NotRunningError":
            return NotRunningError(str(error)[:500], sandbox=sandbox, hint="start it again when it has stopped")
        case "SandboxLostError":
            return SandboxLostError(str(error)[:500], sandbox=sandbox, hint="start it again")
        case "NotFoundError":
            hint = "the last 32 that ended in the background are kept, until the sandbox stops"
            return NotFoundError(str(error)[:500], sandbox=sandbox, hint=hint)
    return ProtocolError(f"its guest refused: {error}"[:500], sandbox=sandbox)


def _not_started(error: RemoteError, sandbox: str) -> SandboxError:
    message, number = str(error)[:500], error.fields.get("errno")
    if number == errno.EAGAIN:
        return no_more_processes(message, sandbox)
    if number in (errno.ENOMEM, errno.EMFILE, errno.ENFILE):
        return UnavailableError(message, sandbox=sandbox, hint=_FULL)
    code = 126 if error.fields.get("exit_code") == 126 else 127
    return CommandNotFoundError(message, exit_code=code, sandbox=sandbox, hint=_start_hint(message, number, code))


def no_more_processes(told: str, sandbox: str) -> LimitExceededError:
    """What a command meets in a sandbox that is full of them."""
    return LimitExceededError(f"its limit on processes is reached ({told})", sandbox=sandbox, hint=_FULL)


def too_large(what: str, error: frames.FrameError, sandbox: str) -> InvalidOptionError:
    """A request that no frame holds."""
    return InvalidOptionError(
        f"{what} is too large: {error}", sandbox=sandbox, hint="pass what is long by stdin or in a file"
    )


def _start_hint(message: str, number: object, code: int) -> str:
    if message.startswith("working directory"):
        return "make the directory, mend its rights, or choose another cwd"
    if number == errno.E2BIG:
        return "pass what is long by stdin or in a file: one argument may have 128 KiB"
    if code == 126:
        return "it is there but cannot be run: see its rights (chmod +x) and its first line"
    return "is it installed in the sandbox, and on its PATH?"


class Control(Protocol):
    """Acts on the command; raises `SandboxError`."""

    async def __call__(
        self, *, signal: int | None = None, grace: float | None = None, size: TerminalSize | None = None
    ) -> None: ...


class GuestExecStream(ExecStream):
    """A conversation with the guest, in the terms of commands.

    The guest is not trusted: where it does not end a command in time, ``kill`` ends the whole environment. ``ended``
    is told that its end is known here; None for a command in the background, which goes on when this is closed.
    ``sweep`` ends within so many seconds what the command leaves behind, ``take`` takes over the pipe of its stdout,
    while what it is given agrees. A guest that is ``resting`` cannot keep to them, which costs nobody anything.
    """

    def __init__(
        self,
        conversation: Conversation,
        *,
        sandbox: str,
        timeout: float | None,
        kill: Callable[[], Awaitable[None]],
        control: Control,
        sweep: Callable[[float], Awaitable[None]],
        take: Callable[[Callable[[], bool]], Awaitable[OutputPipe | None]],
        resting: Resting,
        ended: Callable[[], None] | None,
    ) -> None:
        self._conversation = conversation
        self._sandbox = sandbox
        self._kill = kill
        self._control = control
        self._sweep = sweep
        self._take = take
        self._resting = resting
        self._tell_ended = ended
        self._outcome: ExitStatus | SandboxError | None = None
        self._backstop = asyncio.ensure_future(self._watch(timeout)) if timeout else None

    @property
    def background(self) -> bool:
        return self._tell_ended is None

    @property
    def offset(self) -> int:
        return self._conversation.offset

    @property
    def input_offset(self) -> int:
        return self._conversation.input_offset

    @property
    def lost(self) -> int:
        return self._conversation.lost

    def defer_acknowledgement(self) -> None:
        self._conversation.defer_acknowledgement()

    def acknowledge(self, offset: int) -> None:
        self._conversation.acknowledge(offset)

    async def receive(self) -> tuple[ExecChannel, bytes] | None:
        while self._outcome is None:
            try:
                item = await self._conversation.receive()
                if item is not None:
                    return _CHANNELS[item[0]], item[1]
                self._settle(await self._result())
            except (ConnectionError, SandboxError) as error:
                self._settle(error if isinstance(error, SandboxLostError) else self._vanished(error))
        if isinstance(self._outcome, SandboxLostError):
            raise self._outcome
        return None

    async def take_stdout(self) -> OutputPipe | None:
        return None if self.background or self._outcome is not None else await self._take(self._conversation.standing())

    async def send(self, data: bytes) -> None:
        await self._conversation.send(data)

    async def close_stdin(self) -> None:
        await self._conversation.send_eof()

    async def wait(self) -> ExitStatus:
        while await self.receive() is not None:
            pass
        assert self._outcome is not None
        if isinstance(self._outcome, SandboxError):
            raise self._outcome
        return self._outcome

    async def signal(self, signum: int) -> None:
        if self._outcome is None:
            with contextlib.suppress(SandboxError):  # told by `wait`
                await self._control(signal=signum)

    async def resize(self, size: TerminalSize) -> None:
        if self._outcome is None:
            with contextlib.suppress(SandboxError):
                await self._control(size=size)

    async def cancel(self, grace: float = 2.0) -> None:
        with contextlib.suppress(SandboxError):
            try:
                async with asyncio.timeout(grace + BACKSTOP):
                    await self._end(grace)
                    # Else one that writes on would wait with its end for a reader who waits for it here.
                    self._conversation.forgo_output()
                    await self.wait()
            except TimeoutError:
                if self._resting():
                    self._leave_resting()
                    return
                await self._kill()
                await self.wait()
            with contextlib.suppress(TimeoutError):  # the link may be broken
                async with asyncio.timeout(grace + BACKSTOP):
                    await self._sweep(grace)

    def _leave_resting(self) -> None:
        """It has been asked, and does it when it goes on."""
        message, hint = "it is paused: the command is ended when it goes on", "start it to go on"
        self._settle(NotRunningError(message, sandbox=self._sandbox, hint=hint))
        self._conversation.abandon()

    async def _end(self, grace: float) -> None:
        while self._outcome is None:
            try:
                await self._conversation.resume()  # else it may not have begun, and would later
            except ConnectionError:
                return  # its end with its sandbox's is told by `wait`
            with contextlib.suppress(NotFoundError):
                await self._control(grace=grace)
                return
            if not self._conversation.broken:
                return  # it has ended

    async def aclose(self) -> None:
        if self._outcome is not None:
            return
        if self._tell_ended is not None:
            await self.cancel()
        else:
            self._conversation.abandon()

    async def _watch(self, timeout: float) -> None:
        await asyncio.sleep(timeout + GUEST_GRACE)
        conversation, away = self._conversation, 0.0
        most = conversation.offset + MOST_LEFT
        # The caller may be slow, or the link be broken: but not for ever, nor with ever more to say.
        waits = True
        while waits and away < MOST_AWAY and conversation.offset < most:
            before = conversation.offset
            away = away + BACKSTOP if conversation.resuming else 0.0
            rests = self._resting()
            await asyncio.sleep(BACKSTOP)
            rests = rests or self._resting()
            waits = rests or bool(conversation.unread) or conversation.resuming or conversation.offset > before
        if self._outcome is None:
            await self._kill()

    async def _result(self) -> ExitStatus | SandboxError:
        try:
            told = await self._conversation.result()
        except RemoteError as error:
            return self._refused(error)
        try:
            return exit_status(msgspec.convert(told, CommandResult))
        except msgspec.ValidationError as error:
            return self._vanished(error)

    def _refused(self, error: RemoteError) -> SandboxError:
        if error.code in ("NotFoundError", "AlreadyExistsError"):
            return self._vanished(error)
        return refused(error, self._sandbox)

    def _vanished(self, cause: Exception) -> SandboxLostError:
        why = str(cause.message if isinstance(cause, SandboxError) else cause)[:500]
        lost = SandboxLostError(
            f"the sandbox vanished while a command ran ({why})",
            sandbox=self._sandbox,
            hint="it was stopped or removed, or its processes were killed; see its status",
        )
        lost.__cause__ = cause
        return lost

    def _settle(self, outcome: ExitStatus | SandboxError) -> None:
        """The first one counts: who receives hears last of what has been given up."""
        if self._outcome is not None:
            return
        self._outcome = outcome
        self._conversation.end()
        if self._backstop is not None:
            self._backstop.cancel()
        if self._tell_ended is not None and not isinstance(outcome, SandboxLostError):
            self._tell_ended()
