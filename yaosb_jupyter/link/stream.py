"""One stream of a connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from yaosb_jupyter.errors import ProtocolError
from yaosb_jupyter.guest import frames

MAX_MESSAGE = frames.WINDOW // 2
"""A larger one could wait for ever: the receiver gives credit back in halves of the window."""
LET_GO = 5.0
"""Seconds that a cancelled call may take to end."""
MAX_UNACKNOWLEDGED_ITEMS = 1024
"""Small pieces are acknowledged sooner: to whoever must keep them they cost more than their bytes."""


def message_of(payload: bytes) -> dict[str, Any]:
    """What a MESSAGE holds. Raises `ProtocolError`."""
    try:
        return frames.decode_json(payload)
    except frames.FrameError as error:
        raise ProtocolError(str(error)) from error


class Outlet(Protocol):
    """Where a stream's frames go; not `writable` while the transport's buffer is full."""

    @property
    def writable(self) -> bool: ...

    def write(self, data: bytes) -> None: ...

    async def wait_writable(self) -> None: ...


class RemoteError(Exception):
    """The called side answered with an error: its code, message and fields."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message", error.get("code", "failed"))))
        self.code = str(error.get("code", ""))
        self.fields = dict(error)


class Stream:
    """A call and what flows during it.

    Data, and messages, cost credit: at most `frames.WINDOW` bytes are under way to a side that does not `receive`.
    The side that opened it reads `receive` until None and then `result`; the side that was called ends it by `close`
    or `fail`. Not for concurrent use by several readers; several writers are served in turn.
    """

    def __init__(
        self, stream_id: int, request: Mapping[str, Any], outlet: Outlet, forget: Callable[[int], None]
    ) -> None:
        self.id = stream_id
        self.request = request
        self._outlet = outlet
        self._forget = forget
        self._inbox: deque[tuple[int, bytes]] = deque()
        self._arrived = asyncio.Event()
        self._credit = frames.WINDOW
        self._credit_given = asyncio.Event()
        self._on_credit: Callable[[], None] | None = None
        self._unacknowledged = 0
        self._unacknowledged_items = 0
        self._defers = False
        self._held = 0
        self._closed: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._ended_here = False
        self._eof_arrived = False
        self._eof_sent = False
        self._sending = asyncio.Lock()

    @property
    def closed(self) -> bool:
        """Neither side will send more."""
        return self._closed.done() or self._ended_here

    @property
    def unread(self) -> int:
        """Bytes that have arrived and were not received yet."""
        return self._held

    @property
    def failure(self) -> BaseException | None:
        """What broke the stream before the other side could end it."""
        if not self._closed.done():
            return None
        error = self._closed.exception()
        return None if isinstance(error, RemoteError) else error

    @property
    def outstanding(self) -> int:
        """Bytes that were sent and not acknowledged by credit; the other side may not have them."""
        return max(0, frames.WINDOW - self._credit)

    def charge(self, count: int) -> None:
        """Takes credit for bytes that the other side still holds from an earlier stream."""
        self._credit -= count

    def on_credit(self, tell: Callable[[], None]) -> None:
        """``tell`` is called whenever `outstanding` has become less."""
        self._on_credit = tell

    def defer_acknowledgement(self) -> None:
        """From here on what is received counts as taken only when `acknowledge` says so."""
        self._defers = True

    def end_deferring(self) -> None:
        """What is received counts as taken again."""
        self._defers = False

    def acknowledge(self, count: int) -> None:
        """For the side that defers: so many more bytes that were received are safe here."""
        if count and not self.closed:
            self._unacknowledged -= count
            self._outlet.write(frames.encode_credit(self.id, count))

    async def receive(self) -> tuple[int, bytes] | None:
        """The next (kind, payload) of kinds DATA, DATA_ERR, EOF and MESSAGE; None after the other side's CLOSE.

        Raises `ProtocolError` or `ConnectionError` when the connection broke before.
        """
        while not self._inbox:
            if self._closed.done():
                if (error := self._closed.exception()) is not None and not isinstance(error, RemoteError):
                    raise error
                return None
            self._arrived.clear()
            await self._arrived.wait()
        kind, payload = self._inbox.popleft()
        self._took(len(payload))
        return kind, payload

    async def receive_message(self) -> dict[str, Any] | None:
        """The next message; data is a `ProtocolError`; None at the end."""
        item = await self.receive()
        if item is None:
            return None
        kind, payload = item
        if kind != frames.MESSAGE:
            raise ProtocolError("data arrived where a message was expected")
        return message_of(payload)

    async def result(self) -> Mapping[str, Any]:
        """What the other side closed with; drops what was not received. Raises `RemoteError`."""
        while await self.receive() is not None:
            pass
        return self._closed.result()

    async def send(self, data: frames.Buffer, kind: int = frames.DATA) -> None:
        """Sends bytes, waiting for credit; dropped when the stream or this direction of it has ended."""
        view = memoryview(data)
        async with self._sending:
            while view and (count := await self._send_piece(view, kind)):
                view = view[count:]

    async def send_some(self, data: frames.Buffer, kind: int = frames.DATA) -> int:
        """Sends as much of ``data`` as one frame may hold, waiting for credit; 0 when the stream has ended."""
        async with self._sending:
            return await self._send_piece(memoryview(data), kind)

    async def _send_piece(self, view: memoryview, kind: int) -> int:
        await self._may_send(1)
        if self.closed or self._eof_sent:
            return 0
        count = min(len(view), self._credit, frames.MAX_PAYLOAD)
        self._write(frames.encode(kind, self.id, view[:count]))
        return count

    async def send_message(self, message: Mapping[str, Any]) -> None:
        """Sends a JSON message, whole, waiting for credit. Raises `FrameError` for one above `MAX_MESSAGE`."""
        frame = frames.encode_json(frames.MESSAGE, self.id, dict(message))
        cost = len(frame) - frames.HEADER_SIZE
        if cost > MAX_MESSAGE:
            raise frames.FrameError(f"a message of {cost} bytes is over the limit of {MAX_MESSAGE}")
        async with self._sending:
            await self._may_send(cost)
            self._write(frame)

    async def _may_send(self, cost: int) -> None:
        """Returns when there is credit and room in the transport's buffer, or the stream has ended."""
        while not self.closed:
            if self._credit < cost:
                self._credit_given.clear()
                await self._credit_given.wait()
            elif not self._outlet.writable:
                await self._outlet.wait_writable()
            else:
                return

    def _write(self, frame: bytes) -> None:
        if not self.closed:
            self._credit -= len(frame) - frames.HEADER_SIZE
            self._outlet.write(frame)

    async def send_eof(self) -> None:
        """Tells that no more data follows. Idempotent."""
        async with self._sending:
            if not self.closed and not self._eof_sent:
                self._eof_sent = True
                self._outlet.write(frames.encode(frames.EOF, self.id))

    def cancel(self) -> None:
        """Tells the called side that the result is no longer wanted; it still answers with CLOSE."""
        if not self.closed:
            self._outlet.write(frames.encode(frames.CANCEL, self.id))

    async def let_go(self) -> None:
        """Cancels, and waits a moment until the called side has let go of what it held. No-op once it has ended."""
        if self.closed:
            return
        self.cancel()
        with suppress(RemoteError, ConnectionError, ProtocolError, TimeoutError):
            async with asyncio.timeout(LET_GO):
                await self.result()

    def abandon(self) -> None:
        """Ends the stream here at once; for the side that opened it. What the called side still says is dropped."""
        self.cancel()
        self._inbox.clear()
        self.break_off(ConnectionAbortedError("the stream was closed here"))
        self._forget(self.id)

    def close(self, result: Mapping[str, Any] | None = None) -> None:
        """Ends the stream with a result; for the side that was called. Idempotent."""
        self._end({"result": dict(result or {})})

    def fail(self, error: Mapping[str, Any]) -> None:
        """Ends the stream with an error; for the side that was called. Idempotent."""
        self._end({"error": dict(error)})

    def _end(self, message: dict[str, Any]) -> None:
        if not self.closed:
            self._outlet.write(frames.encode_json(frames.CLOSE, self.id, message))
        self._ended_here = True
        self._wake()
        self._forget(self.id)

    def _took(self, count: int) -> None:
        """Gives credit back in pieces of half a window, so that small reads cost no frames."""
        self._held -= count
        self._unacknowledged += count
        self._unacknowledged_items += 1
        enough = self._unacknowledged_items >= MAX_UNACKNOWLEDGED_ITEMS
        if (enough or self._unacknowledged >= frames.WINDOW // 2) and not self._defers and not self.closed:
            self._outlet.write(frames.encode_credit(self.id, self._unacknowledged))
            self._unacknowledged = self._unacknowledged_items = 0

    def feed(self, kind: int, payload: bytes) -> None:
        """A frame arrived. Raises `frames.FrameError` for a sender without credit."""
        if kind == frames.CREDIT:
            self._credit = min(self._credit + frames.decode_credit(payload), 2 * frames.WINDOW)
            self._credit_given.set()
            if self._on_credit is not None:
                self._on_credit()
            return
        if kind == frames.CLOSE:
            self._feed_close(frames.decode_json(payload))
            return
        if kind == frames.EOF:
            if self._eof_arrived:
                raise frames.FrameError(f"stream {self.id} was ended twice")
            self._eof_arrived = True
        elif kind not in (frames.DATA, frames.DATA_ERR, frames.MESSAGE):
            raise frames.FrameError(f"a frame of kind {kind} does not belong to a stream")
        elif self._eof_arrived and kind != frames.MESSAGE:
            raise frames.FrameError(f"stream {self.id} was sent data after its end")
        elif not payload:
            return
        self._held += len(payload)
        if self._held + self._unacknowledged > frames.WINDOW:
            raise frames.FrameError(f"stream {self.id} was sent more than its credit")
        self._inbox.append((kind, payload))
        self._arrived.set()

    def _feed_close(self, message: dict[str, Any]) -> None:
        error = message.get("error")
        result = message.get("result")
        if isinstance(error, dict):
            self._settle(RemoteError(error))
        elif isinstance(result, dict):
            if not self._closed.done():
                self._closed.set_result(result)
            self._wake()
        else:
            raise frames.FrameError("a CLOSE without result or error")

    def break_off(self, error: BaseException) -> None:
        """The connection ended; whoever waits gets ``error``."""
        self._settle(error)

    def _settle(self, error: BaseException) -> None:
        if not self._closed.done():
            self._closed.set_exception(error)
            self._closed.exception()
        self._wake()

    def _wake(self) -> None:
        self._arrived.set()
        self._credit_given.set()
