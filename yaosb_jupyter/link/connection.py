"""Many streams over one connection; the same class at both ends.

The side that dialled sends its HELLO at once and may open streams right behind it; the side that accepted checks the
HELLO before it looks at anything else, and answers with its own.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from yaosb_jupyter.errors import AuthError, ProtocolError
from yaosb_jupyter.guest import frames
from yaosb_jupyter.link.stream import RemoteError, Stream

__all__ = ["Connection", "Farewell", "Handler", "RemoteError", "Stream", "dial_unix"]

log = logging.getLogger(__name__)

Hello = Mapping[str, Any]
Handler = Callable[[Stream], Awaitable[None]]
"""Serves one stream the other side opened; cancelled when that side cancels it or the connection ends."""

HELLO_TIMEOUT = 10.0
FLUSH_TIMEOUT = 5.0
HIGH_WATER = 4 * frames.WINDOW
MAX_STREAMS = 4096
MAX_LOST = 2 * frames.WINDOW
"""Bytes that may still arrive for a stream after its end: what was under way."""
MAX_IDLE = 10_000
"""Frames within a second that cost their sender no credit."""
MAX_REASON = 1000
"""Characters of why a connection ends."""
_FREE = frozenset({frames.PING, frames.PONG, frames.CREDIT, frames.CANCEL})


class Farewell(ConnectionResetError):  # noqa: N818 - it is the other side's word
    """The other side has ended the connection as it meant to, and will not come back."""


class Connection(asyncio.Protocol):
    """One end of a connection.

    ``hello`` is what this side tells; ``check`` raises `AuthError` or `ProtocolError` for a HELLO it does not accept,
    `Farewell` where it has answered that and nothing follows; ``handler`` serves streams that the other side opens
    (without one they are refused).
    """

    def __init__(
        self,
        *,
        dialled: bool,
        hello: Hello,
        check: Callable[[Hello], None] | None = None,
        handler: Handler | None = None,
        on_close: Callable[[Connection], None] | None = None,
    ) -> None:
        self._dialled = dialled
        self.hello = {"major": frames.MAJOR, "minor": frames.MINOR, "features": [], **hello}
        self._check = check
        self._handler = handler
        self._on_close = on_close
        self._ids = itertools.count(1 if dialled else 2, 2)
        self._decoder = frames.Decoder()
        self._streams: dict[int, Stream] = {}
        self._tasks: dict[int, asyncio.Future[None]] = {}
        self._writable = asyncio.Event()
        self._writable.set()
        loop = asyncio.get_running_loop()
        self._peer: asyncio.Future[Hello] = loop.create_future()
        self._ended: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._reason: Exception | None = None
        self._pings: dict[bytes, asyncio.Future[None]] = {}
        self._idled = (0.0, 0)
        self._may_lose = MAX_LOST
        self._timer: asyncio.TimerHandle | None = None

    # What callers use

    async def ready(self) -> Hello:
        """The other side's HELLO. Raises `ProtocolError`, `AuthError` or `ConnectionError` where none is accepted."""
        return await asyncio.shield(self._peer)

    @property
    def peer(self) -> Hello:
        """The other side's HELLO, once `ready` has returned."""
        return self._peer.result()

    @property
    def features(self) -> Sequence[str]:
        """What the other side says it can do."""
        told = self.peer.get("features")
        return told if isinstance(told, list) else ()

    def extra_info(self, name: str) -> Any:
        """What the transport knows: ``"socket"``, ``"peername"``; None where it does not."""
        return None if self._transport is None else self._transport.get_extra_info(name)

    @property
    def closed(self) -> bool:
        """No more streams can be opened."""
        return self._ended.done() or self._transport is None or self._transport.is_closing()

    def open(self, op: str, arguments: Mapping[str, Any] | None = None) -> Stream:
        """Opens a stream. Raises `ConnectionError` on a connection that has ended."""
        if self.closed:
            raise self._reason or ConnectionResetError("the connection has ended")
        request = {**(arguments or {}), "op": op}
        stream_id = next(self._ids)
        frame = frames.encode_json(frames.OPEN, stream_id, request)
        stream = Stream(stream_id, request, self, self._forget)
        self._streams[stream_id] = stream
        self.write(frame)
        return stream

    async def call(self, op: str, arguments: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Opens a stream for a plain request and gives its result; cancelled with the caller. Raises `RemoteError`."""
        stream = self.open(op, arguments)
        try:
            return await stream.result()
        except asyncio.CancelledError:
            stream.cancel()
            raise

    async def ping(self) -> None:
        """Returns when the other side has answered; the caller sets the bound. Raises `ConnectionError`."""
        if self.closed:
            raise self._reason or ConnectionResetError("the connection has ended")
        token = frames.HELLO.to_bytes(1, "big") + next(self._ids).to_bytes(8, "big")
        answered = asyncio.get_running_loop().create_future()
        self._pings[token] = answered
        try:
            self.write(frames.encode(frames.PING, 0, token))
            await answered
        finally:
            self._pings.pop(token, None)

    def detach(self) -> socket.socket:
        """Ends the connection and leaves its socket to the caller, for what is no frame; for ``check``."""
        assert self._transport is not None
        detached: socket.socket = self._transport.get_extra_info("socket").dup()
        self._transport.abort()
        return detached

    async def close(self, reason: str = "closed") -> None:
        """Ends the connection and waits until it has, and what served its streams too. Idempotent."""
        self._goodbye({"reason": reason[:MAX_REASON]})
        if self._transport is not None:
            await self.wait_closed()

    async def wait_closed(self) -> None:
        """Returns when the connection has ended, and what served its streams too."""
        await asyncio.shield(self._ended)
        others = [task for task in self._tasks.values() if task is not asyncio.current_task()]
        if others:
            await asyncio.wait(others)

    # Outlet of the streams

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    @property
    def writable(self) -> bool:
        return self._writable.is_set()

    async def wait_writable(self) -> None:
        await self._writable.wait()

    def _forget(self, stream_id: int) -> None:
        if self._streams.pop(stream_id, None) is not None:
            self._may_lose += MAX_LOST

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=HIGH_WATER)
        self._timer = asyncio.get_running_loop().call_later(HELLO_TIMEOUT, self._hello_overdue)
        if self._dialled:
            self._send_hello()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._decoder.feed(data):
                self._dispatch(frame)
                if self._reason is not None:
                    return
        except frames.FrameError as error:
            self._abort(ProtocolError(str(error)))
        except (AuthError, ProtocolError, Farewell) as error:
            self._abort(error)

    def connection_lost(self, exc: Exception | None) -> None:
        error = self._reason or exc or ConnectionResetError("the connection has ended")
        if not self._peer.done():
            self._peer.set_exception(error)
            self._peer.exception()
        for stream in list(self._streams.values()):
            stream.break_off(error)
        self._streams.clear()
        for task in self._tasks.values():
            task.cancel()
        for answered in self._pings.values():
            if not answered.done():
                answered.set_exception(error)
        self._writable.set()
        self._set_timer(None)
        if not self._ended.done():
            self._ended.set_result(None)
        if self._on_close is not None:
            self._on_close(self)

    # Frames

    def _dispatch(self, frame: frames.Frame) -> None:
        kind, stream_id, payload = frame
        if kind in _FREE or not payload:
            self._count_idle()
        if not self._peer.done():
            self._meet(kind, payload)
        elif kind == frames.OPEN:
            self._serve(stream_id, frames.decode_json(payload))
        elif kind == frames.HELLO:
            raise frames.FrameError("a second HELLO")
        elif kind == frames.PING:
            self._check_reader()
            self.write(frames.encode(frames.PONG, 0, payload))
        elif kind == frames.PONG:
            answered = self._pings.get(payload)
            if answered is not None and not answered.done():
                answered.set_result(None)
        elif kind == frames.GOAWAY:
            self._abort(farewell(frames.decode_json(payload)))
        elif kind == frames.CANCEL:
            if (task := self._tasks.get(stream_id)) is not None:
                task.cancel()
        else:
            self._feed(kind, stream_id, payload)

    def _feed(self, kind: int, stream_id: int, payload: bytes) -> None:
        """A frame for a stream that has ended here meanwhile is no fault of the sender, and dropped."""
        stream = self._streams.get(stream_id)
        if stream is None:
            self._may_lose -= frames.HEADER_SIZE + len(payload)
            if self._may_lose < 0:
                raise frames.FrameError("the other side goes on with what has ended")
            return
        if kind == frames.CLOSE and stream_id in self._tasks:
            raise frames.FrameError("a CLOSE from the side that called")
        stream.feed(kind, payload)
        if kind == frames.CLOSE:
            self._forget(stream_id)

    def _meet(self, kind: int, payload: bytes) -> None:
        if kind == frames.GOAWAY:
            self._abort(farewell(frames.decode_json(payload)))
            return
        if kind != frames.HELLO:
            raise ProtocolError("the first frame is no HELLO")
        hello = frames.decode_json(payload)
        if hello.get("major") != frames.MAJOR:
            raise ProtocolError(f"version {hello.get('major')!r} of the link is not spoken here, {frames.MAJOR} is")
        if self._check is not None:
            self._check(hello)
        if not self._dialled:
            self._send_hello()
        self._set_timer(None)
        self._peer.set_result(hello)

    def _send_hello(self) -> None:
        self.write(frames.encode_json(frames.HELLO, 0, self.hello))

    def _serve(self, stream_id: int, request: dict[str, Any]) -> None:
        ours = stream_id % 2 == (1 if self._dialled else 0)
        if ours or stream_id == 0 or stream_id in self._streams or stream_id in self._tasks:
            raise frames.FrameError(f"stream {stream_id} cannot be opened by the other side")
        self._check_reader()
        stream = Stream(stream_id, request, self, self._forget)
        if self._handler is None or len(self._tasks) >= MAX_STREAMS:
            stream.fail({"code": "UnavailableError", "message": "no more streams are taken here"})
            return
        self._streams[stream_id] = stream
        task = asyncio.ensure_future(self._handler(stream))
        self._tasks[stream_id] = task
        task.add_done_callback(lambda task: self._served(stream, task))

    def _served(self, stream: Stream, task: asyncio.Future[None]) -> None:
        # A callback, since a task that is cancelled before its first step runs none of its own code.
        self._tasks.pop(stream.id, None)
        if task.cancelled():
            stream.fail({"code": "Cancelled", "message": "cancelled"})
        elif (error := task.exception()) is not None:
            log.error("serving %s failed", stream.request.get("op"), exc_info=error)
            stream.fail({"code": "SandboxError", "message": f"internal error: {error!r}"[:1000]})
        else:
            stream.close()

    def _count_idle(self) -> None:
        """Raises `FrameError`: who only keeps us busy does so at the cost of others."""
        now = asyncio.get_running_loop().time()
        since, count = self._idled
        self._idled = (now, 1) if now > since + 1 else (since, count + 1)
        if count > MAX_IDLE:
            raise frames.FrameError(f"more than {MAX_IDLE} idle frames in a second")

    def _check_reader(self) -> None:
        """Raises `FrameError` where the other side asks and asks and reads no answer."""
        if self._transport is not None and self._transport.get_write_buffer_size() > 2 * HIGH_WATER:
            raise frames.FrameError("the other side does not read its answers")

    # The end

    def _goodbye(self, farewell: Mapping[str, str]) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self.write(frames.encode_json(frames.GOAWAY, 0, dict(farewell)))
            self._transport.close()
            # A side that does not read would keep what is unsent, and with it the connection, for ever.
            self._set_timer(asyncio.get_running_loop().call_later(FLUSH_TIMEOUT, self._transport.abort))

    def _abort(self, error: Exception) -> None:
        if self._reason is None:
            self._reason = error
        self._goodbye({"reason": str(error)[:MAX_REASON], "code": type(error).__name__})

    def _hello_overdue(self) -> None:
        self._abort(ProtocolError("the other side did not say HELLO in time"))

    def _set_timer(self, timer: asyncio.TimerHandle | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = timer


def farewell(message: Mapping[str, Any]) -> Exception:
    """What a GOAWAY means."""
    reason = str(message.get("reason", "the other side ended the connection"))[:MAX_REASON]
    match message.get("code"):
        case "AuthError":
            return AuthError(reason)
        case "ProtocolError":
            return ProtocolError(reason)
    return Farewell(reason)


async def dial_unix(path: Path, hello: Hello, handler: Handler | None = None) -> Connection:
    """Connects to a Unix socket and waits for the HELLO. Raises `OSError`, `AuthError`, `ProtocolError`."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_unix_connection(
        lambda: Connection(dialled=True, hello=hello, handler=handler), str(path)
    )
    try:
        await connection.ready()
    except BaseException:
        await connection.close()
        raise
    return connection
