"""Commands of clients whose connections may break: each is held for a while, until its client is back."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.guest import frames
from yaosb_jupyter.guest.ring import Ring
from yaosb_jupyter.link.connection import Farewell
from yaosb_jupyter.link.stream import Stream
from yaosb_jupyter.tai.outputpipe import OutputPipe
from yaosb_jupyter.tai.runtimes.base import ExecStream
from yaosb_jupyter.types import ExitStatus

log = logging.getLogger(__name__)

HOLD = 60.0
"""Seconds that a command goes on without its client."""
MAX_ENDED = 1024
MAX_ENDED_BYTES = 16 << 20
_TOKENS = 1024

KINDS = {ExecChannel.STDOUT: frames.DATA, ExecChannel.STDERR: frames.DATA_ERR}

Begin = Callable[[], Coroutine[Any, Any, ExecStream]]
Departed = Callable[[], Awaitable[None]]
"""Returns when nobody is left who could come back."""


class HeldCommand:
    """One command, served to one connection after the other. What a client has not acknowledged is kept.

    ``stdin``: whether its client may send input. ``over`` is told when the command has its outcome, or was given up.
    """

    def __init__(self, begin: Begin, *, since: int, stdin: bool, over: Callable[[HeldCommand], None]) -> None:
        self._beginning = asyncio.ensure_future(begin())
        self._stdin = stdin
        self._tell_over = over
        self._ring = Ring(since)
        self._position = since
        self._received: int | None = None
        self._writing: asyncio.Future[None] | None = None
        self._outcome: ExitStatus | SandboxError | None = None
        self._server: asyncio.Task[Any] | None = None
        self._holding: asyncio.Task[None] | None = None
        self._taking = asyncio.Lock()
        self._pipe: OutputPipe | None = None

    @property
    def held(self) -> int:
        """Bytes that are kept."""
        return self._ring.held

    async def command(self) -> ExecStream:
        """Once it has begun; raises what it could not begin for."""
        return await asyncio.shield(self._beginning)

    async def take_stdout(self) -> OutputPipe | None:
        """The pipe of its stdout, always the same one, for its client alone; None where it cannot be had."""
        async with self._taking:
            if self._pipe is None:
                self._pipe = await (await self.command()).take_stdout()
            return self._pipe

    async def serve(self, stream: Stream, since: int, departed: Departed) -> ExitStatus:
        """Until it ends; takes over from the connection before.

        When the client cancels or leaves, the command is ended; when its connection breaks, once the client has
        ``departed`` or `HOLD` is over.
        """
        try:
            await self._take_over()
            return await self._serve(stream, since)
        except asyncio.CancelledError:
            if self._server is asyncio.current_task():
                self._server = None
                if isinstance(stream.failure, ConnectionError) and not isinstance(stream.failure, Farewell):
                    self._holding = asyncio.create_task(self._hold(departed))
                else:
                    await self.give_up()
            raise

    async def _take_over(self) -> None:
        if self._holding is not None:
            self._holding.cancel()
            await asyncio.wait([self._holding])
            self._holding = None
        earlier, self._server = self._server, asyncio.current_task()
        if earlier is not None and not earlier.done():
            earlier.cancel()
            await asyncio.wait([earlier])

    async def _serve(self, stream: Stream, since: int) -> ExitStatus:
        try:
            command = await self.command()
        except SandboxError:
            self._tell_over(self)
            raise
        command.defer_acknowledgement()
        if self._received is None:
            self._received = command.input_offset
        lost = max(0, self._ring.start - since)
        self._position = min(since + lost, self._ring.end)
        self._release(stream, command)
        stream.on_credit(lambda: self._release(stream, command))
        feeding = asyncio.create_task(self._feed(stream, command)) if self._stdin else None
        try:
            await stream.send_message({"started": True, "received": self._received, "lost": lost})
            while True:
                await self._send_kept(stream, command)
                if self._outcome is not None:
                    break
                await self._receive(command)
        finally:
            if feeding is not None:
                feeding.cancel()
        if isinstance(self._outcome, SandboxError):
            raise self._outcome
        return self._outcome

    async def _send_kept(self, stream: Stream, command: ExecStream) -> None:
        while self._position < self._ring.end:
            kind, piece = self._ring.read(self._position, frames.MAX_PAYLOAD)
            count = await stream.send_some(piece, kind)
            if not count:
                await asyncio.Event().wait()  # the connection has ended, and whoever served it is being cancelled
            self._position += count
            self._release(stream, command)

    async def _receive(self, command: ExecStream) -> None:
        try:
            chunk = await command.receive()
            if chunk is not None:
                self._ring.append(KINDS[chunk[0]], chunk[1])
                return
            self._outcome = await command.wait()
        except SandboxError as error:
            self._outcome = error
        self._tell_over(self)

    def _release(self, stream: Stream, command: ExecStream) -> None:
        upto = self._position - stream.outstanding
        self._ring.release(upto)
        command.acknowledge(upto)

    async def _feed(self, stream: Stream, command: ExecStream) -> None:
        # What goes wrong with the sandbox or the client meets the reader of the output as well, who tells it.
        with contextlib.suppress(SandboxError, ConnectionError):
            if self._writing is not None:
                await asyncio.shield(self._writing)
            while (item := await stream.receive()) is not None:
                kind, payload = item
                if kind == frames.EOF:
                    await command.close_stdin()
                elif kind == frames.DATA:
                    assert self._received is not None
                    self._received += len(payload)
                    # Goes on when this connection breaks: what was received will not be sent again.
                    self._writing = asyncio.create_task(_write(command, payload))
                    await asyncio.shield(self._writing)

    async def _hold(self, departed: Departed) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HOLD):
                await departed()
        log.info("the client of a command has gone: ending it")
        self._holding = None
        with contextlib.suppress(SandboxError):
            await self.give_up()

    async def give_up(self) -> None:
        """Ends the command, begun or not."""
        if self._holding is not None:
            self._holding.cancel()
        self._beginning.cancel()
        if self._pipe is not None:
            self._pipe.close()
        self._tell_over(self)
        await asyncio.wait([self._beginning])
        if not self._beginning.cancelled() and self._beginning.exception() is None:
            await self._beginning.result().aclose()


async def _write(command: ExecStream, data: bytes) -> None:
    with contextlib.suppress(SandboxError):
        await command.send(data)


class HeldCommands:
    """By their ids, those that run and the last that ended, for clients that missed the end."""

    def __init__(self) -> None:
        self._held: dict[str, HeldCommand] = {}
        self._ended: dict[str, int] = {}
        self._ended_bytes = 0
        self._tokens: deque[str] = deque(maxlen=_TOKENS)

    def find(self, command_id: str) -> HeldCommand | None:
        return self._held.get(command_id)

    def hold(self, command_id: str, begin: Begin, *, since: int = 0, stdin: bool = True) -> HeldCommand:
        held = HeldCommand(begin, since=since, stdin=stdin, over=lambda held: self._note_ended(command_id, held))
        self._held[command_id] = held
        return held

    def first_time(self, token: str) -> bool:
        """Whether what comes with ``token`` was not done before."""
        if token in self._tokens:
            return False
        self._tokens.append(token)
        return True

    def _note_ended(self, command_id: str, held: HeldCommand) -> None:
        if self._held.get(command_id) is not held or command_id in self._ended:
            return
        self._ended[command_id] = held.held
        self._ended_bytes += held.held
        while len(self._ended) > MAX_ENDED or self._ended_bytes > MAX_ENDED_BYTES:
            oldest = next(iter(self._ended))
            self._ended_bytes -= self._ended.pop(oldest)
            del self._held[oldest]

    async def close(self) -> None:
        """Ends those whose clients are away."""
        running = [held for command_id, held in self._held.items() if command_id not in self._ended]
        await asyncio.gather(*(held.give_up() for held in running), return_exceptions=True)


async def follow(stream: Stream, command: ExecStream) -> ExitStatus:
    """Carries a command that goes on without the client, until it ends or the client leaves it."""
    feeding = asyncio.create_task(_feed(stream, command))
    try:
        await stream.send_message({"started": True, "background": True, "received": command.input_offset})
        lost = 0
        while (chunk := await command.receive()) is not None:
            if command.lost > lost:
                await stream.send_message({"lost": command.lost - lost})
                lost = command.lost
            await stream.send(chunk[1], KINDS[chunk[0]])
        return await command.wait()
    finally:
        feeding.cancel()
        await command.aclose()


async def _feed(stream: Stream, command: ExecStream) -> None:
    with contextlib.suppress(SandboxError, ConnectionError):
        while (item := await stream.receive()) is not None:
            if item[0] == frames.EOF:
                await command.close_stdin()
            elif item[0] == frames.DATA:
                await command.send(item[1])
