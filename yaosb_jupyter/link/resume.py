"""A conversation about a command that outlives the connections it is held over: nothing is lost, nothing runs twice.

The other side keeps output until it is acknowledged and tells, when taken up again, how much input it has; this side
remembers how much output it got, and keeps input until it is acknowledged (see docs/link-protocol.md).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Self

from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.guest import frames
from yaosb_jupyter.guest.ring import Ring
from yaosb_jupyter.link.connection import Farewell
from yaosb_jupyter.link.stream import Stream, message_of

PAUSE = 0.02
"""Seconds between two attempts, should each new connection break at once."""

Reopen = Callable[[int | None], Awaitable[Stream]]
"""Opens a stream that goes on at an offset of the output; None: that begins, as there is no sign that it has begun.

Waits for a connection. What it raises but `ConnectionError` ends the conversation.
"""


class Conversation:
    """Made over a stream that begins it, or by `attach`. For one reader; writers take turns.

    ``offset`` of the next byte of output, counting those of both kinds; ``lost`` bytes that were dropped at the other
    side before they could be sent. Without ``reopen``, a broken connection ends it.
    """

    def __init__(self, stream: Stream, reopen: Reopen | None) -> None:
        self._stream = stream
        self._reopen: Final = reopen
        self._begun = False
        self.offset = 0
        self.lost = 0
        self.background = False
        self.resumed = False
        self._given_up = False
        self._acknowledged = 0
        self._defers = False
        self._forgoes = False
        self._resuming = asyncio.Lock()
        self._input = Ring()
        self._cursor = 0
        self._eof = False
        self._sending = asyncio.Lock()
        self._refill: asyncio.Future[None] | None = None

    @classmethod
    async def attach(cls, reopen: Reopen, since: int) -> Self:
        """Takes up what was begun before. Raises `RemoteError` where it is refused, and as `receive`."""
        conversation = cls(await reopen(since), reopen)
        conversation.offset = conversation._acknowledged = since
        while (message := await conversation._stream.receive_message()) is None:
            await conversation._stream.result()
        conversation.begin(message)
        return conversation

    def begin(self, message: Mapping[str, Any]) -> None:
        """Takes the other side's first message, where that was received by somebody else."""
        self._note(message)
        self._cursor = _count(message, "received")
        self._input = Ring(self._cursor)
        self._stream.charge(_count(message, "waiting"))

    @property
    def input_offset(self) -> int:
        """Of the next byte of input, from the command's start."""
        return self._input.end

    @property
    def closed(self) -> bool:
        """The other side has ended it, or it cannot be taken up again."""
        return self._given_up or (self._stream.closed and not self.broken)

    @property
    def unread(self) -> int:
        """Bytes that have arrived and were not taken yet: not received, or not acknowledged where that counts."""
        return self._stream.unread + (self.offset - self._acknowledged if self._defers else 0)

    @property
    def broken(self) -> bool:
        """It is to be taken up again."""
        return self._stream.failure is not None and not self._given_up

    @property
    def resuming(self) -> bool:
        """The connection broke, and the next one is waited for."""
        return self._resuming.locked()

    def standing(self) -> Callable[[], bool]:
        """Tells from here on whether it is still held over the connection of this moment."""
        stream = self._stream
        return lambda: self._stream is stream and stream.failure is None

    # Output

    async def receive(self) -> tuple[int, bytes] | None:
        """The next output, DATA or DATA_ERR; None when the other side has ended the conversation.

        Raises `ConnectionError` or `ProtocolError` where it could not be taken up again, and what ``reopen`` raises.
        """
        while True:
            stream = self._stream
            try:
                item = await stream.receive()
            except ConnectionError as error:
                await self._resume(stream, error)
                continue
            if item is None:
                return None
            kind, payload = item
            if kind == frames.MESSAGE:
                self._note(message_of(payload))
            elif kind != frames.EOF:
                self.offset += len(payload)
                return item

    async def result(self) -> Mapping[str, Any]:
        """What the other side closed with; drops what was not received. Raises `RemoteError` too."""
        while await self.receive() is not None:
            pass
        return await self._stream.result()

    def defer_acknowledgement(self) -> None:
        """The other side keeps output until `acknowledge`, not until `receive`."""
        if not self._forgoes:
            self._defers = True
            self._stream.defer_acknowledgement()

    def forgo_output(self) -> None:
        """What is left of it will not be asked for again: no acknowledgement is waited for any more."""
        self.acknowledge(self.offset)
        self._forgoes = True
        self._defers = False
        self._stream.end_deferring()

    def acknowledge(self, offset: int) -> None:
        """Output before ``offset`` will not be asked for again."""
        if self._defers and offset > self._acknowledged:
            self._stream.acknowledge(offset - self._acknowledged)
            self._acknowledged = offset

    # Input

    async def send(self, data: bytes) -> None:
        """Waits until the other side takes it; after the end, data is dropped."""
        async with self._sending:
            self._input.append(frames.DATA, bytes(data))
            await self._flush()

    async def send_eof(self) -> None:
        """Idempotent."""
        self._eof = True
        async with self._sending:
            await self._flush()

    async def _flush(self) -> None:
        """Sends the input from the cursor on, over as many connections as it takes, and its end."""
        while self._cursor < self._input.end:
            stream = self._stream
            _, piece = self._input.read(self._cursor, frames.MAX_PAYLOAD)
            count = await stream.send_some(piece)
            if stream is not self._stream:
                continue  # it was taken up again meanwhile, which has moved the cursor
            self._cursor += count
            if count:
                self._input.release(self._cursor - stream.outstanding)
            elif not await self._may_go_on(stream):
                self._drop_input()
        if self._eof:
            await self._stream.send_eof()

    async def _may_go_on(self, stream: Stream) -> bool:
        """After a stream took no more: whether there is another one. How it ended is told to the reader."""
        if stream.failure is None:
            return False
        with contextlib.suppress(SandboxError, ConnectionError):
            await self._resume(stream, stream.failure)
            return True
        return False

    def _drop_input(self) -> None:
        self._cursor = self._input.end
        self._input.release(self._cursor)

    # Connections

    async def resume(self) -> None:
        """Takes it up again now where its connection broke. Raises as `receive`."""
        stream = self._stream
        if stream.failure is not None:
            await self._resume(stream, stream.failure)

    async def _resume(self, broken: Stream, cause: BaseException) -> None:
        async with self._resuming:
            if self._stream is not broken:
                return
            try:
                if self._given_up or self._reopen is None or not _passes(cause):
                    raise cause
                self._stream = await self._open_again(self._reopen)
            except Exception:
                self._given_up = True
                raise
            self.resumed = True
            self._acknowledged = self.offset
            if self._defers:
                self._stream.defer_acknowledgement()
        self._refill = asyncio.ensure_future(self._refill_input())

    async def _open_again(self, reopen: Reopen) -> Stream:
        while True:
            try:
                stream = await reopen(self.offset if self._begun else None)
                message = await stream.receive_message()
            except ConnectionError:
                await asyncio.sleep(PAUSE)
                continue
            if message is None:
                return stream  # it was refused, or had ended: the reader finds out
            self._note(message)
            received = _count(message, "received")
            stream.charge(_count(message, "waiting"))
            self._cursor = min(max(received, self._input.start), self._input.end)
            return stream

    async def _refill_input(self) -> None:
        async with self._sending:
            await self._flush()

    def _note(self, message: Mapping[str, Any]) -> None:
        if "started" in message:
            self._begun = True
            self.background = bool(message.get("background"))
        lost = _count(message, "lost")
        self.lost += lost
        self.offset += lost
        self._acknowledged += lost

    def end(self) -> None:
        """Nothing is sent or awaited any more; the stream is left as it is."""
        if self._refill is not None:
            self._refill.cancel()

    def abandon(self) -> None:
        """Lets go at once, of a side that goes on without this one: whoever receives is told that it has ended."""
        self._given_up = True
        self.end()
        self._stream.abandon()


def _passes(cause: BaseException) -> bool:
    """Whether another connection can be better than the one that ended so."""
    return isinstance(cause, ConnectionError) and not isinstance(cause, Farewell)


def _count(message: Mapping[str, Any], name: str) -> int:
    """The other side may say anything."""
    value = message.get(name)
    return min(max(value, 0), 1 << 62) if isinstance(value, int) else 0
