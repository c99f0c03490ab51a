"""A command that the daemon runs, or follows, for this client."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Self

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.daemon import requests as ask
from yaosb_jupyter.daemon.line import Line, told
from yaosb_jupyter.daemon.volume import CHANNELS
from yaosb_jupyter.errors import NotAvailableError, NotFoundError, NotRunningError, ProtocolError, UnavailableError
from yaosb_jupyter.link.connection import Connection
from yaosb_jupyter.link.resume import Conversation, Reopen
from yaosb_jupyter.link.stream import RemoteError, Stream
from yaosb_jupyter.options import TerminalSize
from yaosb_jupyter.tai.outputpipe import OutputPipe
from yaosb_jupyter.tai.runtimes.base import ExecStream
from yaosb_jupyter.types import ExitStatus
from yaosb_jupyter.wire.codec import from_json

_END_PATIENCE = 15.0
"""Seconds for the daemon to end a command that was cancelled as it began."""
_ATTEMPTS = 3

_UNKNOWN = (NotFoundError.__name__, NotAvailableError.__name__, NotRunningError.__name__)
"""What a daemon says of a command that another one ran, and that cannot be taken up again."""


class RemoteExecStream(ExecStream):
    """Made by `begin` or `attach`. It goes on over the next connection when one breaks, and with the next daemon.

    A client that ends takes its command with it, unless that is in the background.
    """

    def __init__(self, line: Line, request: ask.Exec | ask.Attach, again: _Again, conversation: Conversation) -> None:
        self._line = line
        self._request = request
        self._again = again
        self._command_id = again.request.command_id
        self._conversation = conversation
        self._kept: deque[tuple[ExecChannel, bytes]] = deque()
        self._status: ExitStatus | None = None

    @classmethod
    async def begin(cls, line: Line, request: ask.Exec) -> Self:
        """Returns when the command was accepted. Raises what the daemon refuses it with; cancelled, nothing runs."""
        request = replace(request, options=replace(request.options, id=request.options.id or new_id()))
        again = _Again(line, ask.Attach(ref=request.ref, command_id=request.options.id, since=0))
        with told(request):
            conversation = await _begin_at_last(line, request, again)
        return cls(line, request, again, conversation)

    @classmethod
    async def attach(cls, line: Line, request: ask.Attach) -> Self:
        """Raises what the daemon refuses it with."""
        again = _Again(line, request)
        with told(request):
            conversation = await Conversation.attach(again.reopen, request.since or 0)
        return cls(line, request, again, conversation)

    @property
    def background(self) -> bool:
        return self._conversation.background

    @property
    def offset(self) -> int:
        return self._conversation.offset - sum(len(data) for _, data in self._kept)

    @property
    def input_offset(self) -> int:
        return self._conversation.input_offset

    @property
    def lost(self) -> int:
        return self._conversation.lost

    async def receive(self) -> tuple[ExecChannel, bytes] | None:
        if self._kept:
            return self._kept.popleft()
        with self._told():
            item = await self._conversation.receive()
        return None if item is None else (CHANNELS[item[0]], item[1])

    async def take_stdout(self) -> OutputPipe | None:
        """Raises `UnavailableError` where the connections break on which it is handed over: it may be lost then."""
        if self.background or not await self._line.passes_descriptors():
            return None
        request = ask.TakeStdout(ref=self._request.ref, command_id=self._command_id)
        standing = self._conversation.standing()
        with told(request):
            stream = await self._line.open(request)
            try:
                offered = await stream.receive_message()
                if offered is None:
                    await stream.result()
                    return None
                pipe = OutputPipe(await self._line.claim(str(offered.get("token"))), int(offered.get("offset", 0)))
            except BaseException:
                stream.cancel()
                raise
            if not standing():
                pipe.close()
                raise ConnectionResetError("it broke while the output was handed over")
        self._again.request = replace(self._again.request, holds=True)
        return pipe

    async def send(self, data: bytes) -> None:
        await self._conversation.send(data)

    async def close_stdin(self) -> None:
        await self._conversation.send_eof()

    async def wait(self) -> ExitStatus:
        self._kept.clear()
        if self._status is None:
            with self._told():
                answer = await self._conversation.result()
            self._conversation.end()
            self._status = from_json(ExitStatus, answer.get("value"))
        return self._status

    async def signal(self, signum: int) -> None:
        await self._control(signal=signum)

    async def resize(self, size: TerminalSize) -> None:
        await self._control(size=size)

    async def cancel(self, grace: float = 2.0) -> None:
        if self._line.closed:
            return  # with the line, the daemon ends its commands
        if self._conversation.closed:
            with contextlib.suppress(NotFoundError, NotAvailableError, NotRunningError):  # nothing can be left
                await control(self._line, self._request.ref, self._command_id, grace=grace)
            return
        await self._control(grace=grace)
        # What it wrote before may still be read; taking it here lets the daemon let go of the command.
        with self._told():
            while (item := await self._conversation.receive()) is not None:
                self._kept.append((CHANNELS[item[0]], item[1]))

    async def aclose(self) -> None:
        if self.background:
            self._conversation.abandon()
        elif not self._conversation.closed:
            await self.cancel()

    async def _control(
        self, *, signal: int | None = None, grace: float | None = None, size: TerminalSize | None = None
    ) -> None:
        if self._conversation.closed:
            return
        with contextlib.suppress(NotFoundError):  # it has ended
            await control(self._line, self._request.ref, self._command_id, signal=signal, grace=grace, size=size)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            with told(self._request):
                yield
        except (NotFoundError, NotAvailableError, NotRunningError) as error:
            if not self._conversation.resumed or type(error).__name__ not in _UNKNOWN:
                raise
            raise UnavailableError(
                f"the connection to the daemon was lost while a command ran, and it cannot be taken up again: {error}",
                hint="it may run on: look, and end it (pkill, kill_process), before you run it again",
            ) from error


async def control(
    line: Line,
    ref: str,
    command_id: str,
    *,
    signal: int | None = None,
    grace: float | None = None,
    size: TerminalSize | None = None,
) -> None:
    request = ask.Control(ref=ref, command_id=command_id, token=new_id(), signal=signal, grace=grace, size=size)
    await line.call(type(None), request)


def new_id() -> str:
    return secrets.token_hex(8)


class _Again:
    """How a command is taken up again."""

    def __init__(self, line: Line, request: ask.Attach) -> None:
        self._line = line
        self.request = request

    async def reopen(self, since: int | None) -> Stream:
        connection = await self._line.connect()
        request = self.request if self.request.since is None else replace(self.request, since=since)
        return connection.open(request.op, request.arguments())


async def _begin_at_last(line: Line, request: ask.Exec, again: _Again) -> Conversation:
    """Asks again after a lost connection: the daemon, and the guest, know what has begun."""
    first: object = None
    lost: Exception = ConnectionResetError("the connection was lost")
    for _ in range(_ATTEMPTS):
        connection = await line.connect()
        daemon = connection.peer.get("instance")
        first = first or daemon
        repeated = replace(request, again=daemon != first)
        try:
            return await _begin(connection, repeated, again.reopen)
        except ConnectionError as error:
            lost = error
        except RemoteError as error:
            if repeated.again and error.code in _UNKNOWN:
                raise ConnectionResetError(str(error)) from error
            raise
    raise lost


async def _begin(connection: Connection, request: ask.Exec, reopen: Reopen) -> Conversation:
    stream = connection.open(request.op, request.arguments())
    try:
        message = await stream.receive_message()
        if message is None:
            await stream.result()
            raise ProtocolError("a command ended before it began")
    except asyncio.CancelledError:
        stream.cancel()
        with contextlib.suppress(RemoteError, ConnectionError, TimeoutError):
            async with asyncio.timeout(_END_PATIENCE):
                await stream.result()
        raise
    conversation = Conversation(stream, reopen)
    conversation.begin(message)
    return conversation
