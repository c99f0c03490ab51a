"""The commands of one sandbox, asked of its guest: begun, listed, taken up again, ended."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from yaosb_jupyter.errors import NotAvailableError, NotFoundError, ProtocolError, SandboxError, SandboxLostError
from yaosb_jupyter.guest.frames import FrameError
from yaosb_jupyter.link.connection import Connection
from yaosb_jupyter.link.exec import CommandResult, Control, GuestExecStream, exit_status, refused, too_large
from yaosb_jupyter.link.handover import OPERATION, Handover, Handovers
from yaosb_jupyter.link.resume import Conversation
from yaosb_jupyter.link.stream import RemoteError, Stream
from yaosb_jupyter.options import ExecOptions, TerminalSize
from yaosb_jupyter.tai.outputpipe import OutputPipe
from yaosb_jupyter.types import CommandInfo

CALL_TIMEOUT = 30.0
LINK_PATIENCE = 600.0
"""How long a link that broke is waited for. The guest holds commands as long."""
FORGET_AFTER = 0.1
"""Ends are acknowledged together."""

Kill = Callable[[], Awaitable[None]]
"""Ends the whole environment, where its guest does not keep to the rules."""


class Link(Protocol):
    """The part of a `GuestLink` that is needed here."""

    @property
    def resting(self) -> bool: ...

    def silent(self, cause: str) -> SandboxError: ...

    async def connected(self, timeout: float) -> Connection:
        """The link, waited for. Raises `SandboxLostError`."""


class _Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a guest may tell of a command; everything else is refused."""

    id: str
    argv: list[str]
    pid: int
    background: bool
    started: float
    kept: int
    written: int
    result: CommandResult | None


class GuestCommands:
    """See `Runtime` for what its methods raise. Who may ask is not decided here."""

    def __init__(self, link: Link, sandbox: str) -> None:
        self._link = link
        self._sandbox = sandbox
        self.handovers = Handovers()
        self._ended: list[str] = []
        self._forgetting: asyncio.Task[None] | None = None

    async def exec(self, options: ExecOptions, *, cwd: str, env: Mapping[str, str], kill: Kill) -> GuestExecStream:
        exec_id = options.id or new_id()
        request = exec_request(exec_id, options, cwd=cwd, env=env)
        connection = await self._connected(needs="attach" if options.tty else "")
        instance = _instance(connection)
        handover = Handover(exec_id)
        try:
            stream = connection.open("exec", request)
        except ConnectionError as error:
            raise SandboxLostError("its link broke", sandbox=self._sandbox) from error
        except FrameError as error:
            raise too_large("the command", error, self._sandbox) from error

        async def reopen(since: int | None) -> Stream:
            if since is not None:
                again = {"exec_id": exec_id, "since": since, "holds": handover.taken}
                return await self._open("attach", again, instance)
            return await self._open("exec", request, instance)

        if "attach" not in connection.features:
            told = Conversation(stream, None)
            return self._stream(told, handover, timeout=options.timeout, kill=kill, control=_by_message(stream))
        return self._stream(Conversation(stream, reopen), handover, timeout=options.timeout, kill=kill)

    async def attach(self, exec_id: str, *, since: int | None, kill: Kill, holds: bool = False) -> GuestExecStream:
        """``since`` None: its output is not wanted; ``holds``: its reader has the pipe of its stdout."""
        connection = await self._connected(needs="attach")
        instance = _instance(connection)
        handover = Handover(exec_id, taken=holds)

        async def reopen(offset: int | None) -> Stream:
            wanted = {} if since is None else {"since": offset, "holds": handover.taken}
            return await self._open("attach", {"exec_id": exec_id, **wanted}, instance)

        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                conversation = await Conversation.attach(reopen, since or 0)
        except RemoteError as error:
            raise refused(error, self._sandbox) from error
        except (ConnectionError, TimeoutError) as error:
            raise self._link.silent(str(error) or "no answer in time") from error
        return self._stream(conversation, handover, timeout=None, kill=kill)

    def _stream(
        self,
        conversation: Conversation,
        handover: Handover,
        *,
        timeout: float | None,
        kill: Kill,
        control: Control | None = None,
    ) -> GuestExecStream:
        exec_id = handover.exec_id
        return GuestExecStream(
            conversation,
            sandbox=self._sandbox,
            timeout=timeout,
            kill=kill,
            control=control or functools.partial(self._act, exec_id),
            sweep=functools.partial(self._sweep, exec_id),
            take=functools.partial(self._take, handover),
            resting=lambda: self._link.resting,
            ended=None if conversation.background else lambda: self._acknowledge(exec_id),
        )

    async def spawn(self, options: ExecOptions, *, cwd: str, env: Mapping[str, str]) -> CommandInfo:
        request = exec_request(options.id or new_id(), options, cwd=cwd, env=env)
        return self._info((await self._call("spawn", request)).get("command"))

    async def list(self) -> Sequence[CommandInfo]:
        told = (await self._call("commands", {})).get("commands")
        return [self._info(one) for one in told] if isinstance(told, list) else []

    async def control(
        self,
        exec_id: str,
        *,
        signal: int | None = None,
        grace: float | None = None,
        size: TerminalSize | None = None,
    ) -> None:
        """What a command that has ended leaves behind can be ended too. Raises `NotFoundError`."""
        try:
            await self._act(exec_id, signal=signal, grace=grace, size=size)
        except NotFoundError:
            if grace is not None:
                await self._sweep(exec_id, grace)
            raise

    async def _act(
        self,
        exec_id: str,
        *,
        signal: int | None = None,
        grace: float | None = None,
        size: TerminalSize | None = None,
    ) -> None:
        """Done once, however often the link breaks."""
        request: dict[str, Any] = {"exec_id": exec_id, "token": secrets.token_hex(8)}
        if signal is not None:
            request["signal"] = signal
        if grace is not None:
            request["grace"] = grace
        if size is not None:
            request["size"] = [size.columns, size.rows]
        await self._call("control", request)

    async def _sweep(self, exec_id: str, grace: float) -> None:
        await self._call("sweep", {"exec_id": exec_id, "grace": grace})

    async def _take(self, handover: Handover, wanted: Callable[[], bool]) -> OutputPipe | None:
        """The pipe of its stdout, where the guest hands it over while it is ``wanted``."""
        with self.handovers.expected(handover, wanted), contextlib.suppress(SandboxError, RemoteError, OSError):
            connection = await self._connected(needs=OPERATION)
            async with asyncio.timeout(CALL_TIMEOUT):
                await connection.call(OPERATION, {"exec_id": handover.exec_id})
        return handover.pipe

    # Asking

    async def _call(self, op: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """All these may be asked again: the guest knows what it has done."""
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                while True:
                    connection = await self._connected(needs=op)
                    with contextlib.suppress(ConnectionError):
                        return await connection.call(op, arguments)
        except TimeoutError as error:
            raise self._link.silent("no answer in time") from error
        except RemoteError as error:
            raise refused(error, self._sandbox) from error
        except FrameError as error:
            raise too_large("the command", error, self._sandbox) from error

    async def _connected(self, *, needs: str) -> Connection:
        connection = await self._link.connected(CALL_TIMEOUT)
        if needs and needs not in connection.features:
            raise NotAvailableError(
                f"its guest is too old to {needs} commands",
                sandbox=self._sandbox,
                hint="stop and start the sandbox, which renews it",
            )
        return connection

    async def _open(self, op: str, arguments: Mapping[str, Any], instance: str) -> Stream:
        """On the link of the same guest as before: another one knows nothing of what this one runs."""
        connection = await self._link.connected(LINK_PATIENCE)
        if _instance(connection) != instance:
            raise SandboxLostError(
                "it was started anew while a command ran", sandbox=self._sandbox, hint="run the command again"
            )
        return connection.open(op, arguments)

    # Acknowledging

    def _acknowledge(self, exec_id: str) -> None:
        self._ended.append(exec_id)
        if self._forgetting is None or self._forgetting.done():
            self._forgetting = asyncio.create_task(self._forget())

    async def _forget(self) -> None:
        """What never gets there costs the guest some memory, for some time."""
        while self._ended:
            await asyncio.sleep(FORGET_AFTER)
            ended, self._ended = self._ended, []
            with contextlib.suppress(SandboxError):
                await self._call("forget", {"exec_ids": ended})

    async def close(self) -> None:
        if self._forgetting is not None:
            self._forgetting.cancel()
            await asyncio.wait([self._forgetting])

    # What is told

    def _info(self, told: Any) -> CommandInfo:
        try:
            one = msgspec.convert(told, _Told)
            began = datetime.fromtimestamp(one.started, UTC)
        except (msgspec.ValidationError, ValueError, OverflowError, OSError) as error:
            raise ProtocolError(f"its guest told what is no command: {error}", sandbox=self._sandbox) from error
        return CommandInfo(
            id=one.id,
            argv=tuple(one.argv),
            pid=one.pid,
            background=one.background,
            started_at=began,
            written=one.written,
            kept=one.kept,
            exit=None if one.result is None else exit_status(one.result),
        )


def new_id() -> str:
    return secrets.token_hex(8)


def exec_request(exec_id: str, options: ExecOptions, *, cwd: str, env: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of the operations ``exec`` and ``spawn``."""
    return {
        "exec_id": exec_id,
        "argv": list(options.argv),
        "cwd": cwd,
        "env": dict(env),
        "timeout": options.timeout or 0,
        "stdin": options.stdin or options.tty is not None,
        "size": None if options.tty is None else [options.tty.columns, options.tty.rows],
    }


def _by_message(stream: Stream) -> Control:
    """How the guests of version 1.0 are told."""

    async def control(
        *, signal: int | None = None, grace: float | None = None, size: TerminalSize | None = None
    ) -> None:
        if size is None:
            await stream.send_message({"cancel": grace} if signal is None else {"signal": signal})

    return control


def _instance(connection: Connection) -> str:
    """Which guest is at the other end; a guest is one process."""
    return str(connection.peer.get("instance"))
