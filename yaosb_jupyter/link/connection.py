"""Many streams over one connection; the same class at both ends.

The side that dialled sends its HELLO at once and may open streams right behind it; the side that accepted checks the
HELLO before it looks at anything else, and answers with its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, cast

from yaosb_jupyter.errors import AuthError, ProtocolError
from yaosb_jupyter.guest import frames
from yaosb_jupyter.link.stream import RemoteError, Stream

__all__ = ["Connection", "Handler", "RemoteError", "Stream", "dial_unix"]

log = logging.getLogger(__name__)

Hello = Mapping[str, Any]
Handler = Callable[[Stream], Awaitable[None]]
"""Serves one stream the other side opened; cancelled when that side cancels it or the connection ends."""

HELLO_TIMEOUT = 10.0
HIGH_WATER = 4 * frames.WINDOW
MAX_STREAMS = 4096


class Connection(asyncio.Protocol):
    """One end of a connection.

    ``hello`` is what this side tells; ``check`` raises `AuthError` or `ProtocolError` for a HELLO it does not accept;
    ``handler`` serves streams that the other side opens (without one they are refused).
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
        self._hello = {"major": frames.MAJOR, "minor": frames.MINOR, "features": [], **hello}
        self._check = check
        self._handler = handler
        self._on_close = on_close
        self._ids = itertools.count(1 if dialled else 2, 2)
        self._decoder = frames.Decoder()
        self._streams: dict[int, Stream] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._writable = asyncio.Event()
        self._writable.set()
        loop = asyncio.get_running_loop()
        self._peer: asyncio.Future[Hello] = loop.create_future()
        self._ended: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._reason: Exception | None = None
        self._pings: dict[bytes, asyncio.Future[None]] = {}

    # What callers use

    async def ready(self) -> Hello:
        """The other side's HELLO. Raises `ProtocolError`, `AuthError` or `ConnectionError` where none is accepted."""
        async with asyncio.timeout(HELLO_TIMEOUT):
            return await asyncio.shield(self._peer)

    @property
    def closed(self) -> bool:
        return self._ended.done()

    def open(self, op: str, arguments: Mapping[str, Any] | None = None) -> Stream:
        """Opens a stream. Raises `ConnectionError` on a connection that has ended."""
        if self.closed or self._transport is None or self._transport.is_closing():
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
        """Returns when the other side has answered; the caller sets the bound."""
        token = frames.HELLO.to_bytes(1, "big") + next(self._ids).to_bytes(8, "big")
        answered = asyncio.get_running_loop().create_future()
        self._pings[token] = answered
        try:
            self.write(frames.encode(frames.PING, 0, token))
            await answered
        finally:
            self._pings.pop(token, None)

    async def close(self, reason: str = "closed") -> None:
        """Ends the connection and waits until it has. Idempotent."""
        self._goodbye(reason)
        if self._transport is not None:
            await asyncio.shield(self._ended)

    async def wait_closed(self) -> None:
        await asyncio.shield(self._ended)

    # Outlet of the streams

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    async def writable(self) -> None:
        if not self._writable.is_set():
            await self._writable.wait()

    def _forget(self, stream_id: int) -> None:
        self._streams.pop(stream_id, None)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=HIGH_WATER)
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
        except (frames.FrameError, AuthError, ProtocolError) as error:
            self._abort(error if isinstance(error, AuthError) else ProtocolError(str(error)))

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
            answered.cancel()
        self._writable.set()
        if not self._ended.done():
            self._ended.set_result(None)
        if self._on_close is not None:
            self._on_close(self)

    # Frames

    def _dispatch(self, frame: frames.Frame) -> None:
        kind, stream_id, payload = frame
        if not self._peer.done():
            self._meet(kind, payload)
        elif kind == frames.OPEN:
            self._serve(stream_id, frames.decode_json(payload))
        elif kind == frames.PING:
            self.write(frames.encode(frames.PONG, 0, payload))
        elif kind == frames.PONG:
            answered = self._pings.get(payload)
            if answered is not None and not answered.done():
                answered.set_result(None)
        elif kind == frames.GOAWAY:
            self._abort(_farewell(frames.decode_json(payload)))
        elif kind == frames.CANCEL:
            if (task := self._tasks.get(stream_id)) is not None:
                task.cancel()
        else:
            self._feed(kind, stream_id, payload)

    def _feed(self, kind: int, stream_id: int, payload: bytes) -> None:
        """A frame for a stream that has ended here meanwhile is no fault of the sender, and dropped."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        stream.feed(kind, payload)
        if kind == frames.CLOSE:
            self._forget(stream_id)

    def _meet(self, kind: int, payload: bytes) -> None:
        if kind == frames.GOAWAY:
            self._abort(_farewell(frames.decode_json(payload)))
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
        self._peer.set_result(hello)

    def _send_hello(self) -> None:
        self.write(frames.encode_json(frames.HELLO, 0, self._hello))

    def _serve(self, stream_id: int, request: dict[str, Any]) -> None:
        ours = stream_id % 2 == (1 if self._dialled else 0)
        if ours or stream_id == 0 or stream_id in self._streams:
            raise frames.FrameError(f"stream {stream_id} cannot be opened by the other side")
        stream = Stream(stream_id, request, self, self._forget)
        if self._handler is None or len(self._streams) >= MAX_STREAMS:
            stream.fail({"code": "UnavailableError", "message": "no more streams are taken here"})
            return
        self._streams[stream_id] = stream
        task = asyncio.ensure_future(self._handle(self._handler, stream))
        self._tasks[stream_id] = task

    async def _handle(self, handler: Handler, stream: Stream) -> None:
        try:
            await handler(stream)
            stream.close()
        except asyncio.CancelledError:
            stream.fail({"code": "Cancelled", "message": "cancelled"})
        except Exception as error:
            log.exception("serving %s failed", stream.request.get("op"))
            stream.fail({"code": "SandboxError", "message": f"internal error: {error!r}"})
        finally:
            self._tasks.pop(stream.id, None)

    # The end

    def _goodbye(self, reason: str) -> None:
        if self._transport is not None and not self._transport.is_closing():
            with contextlib.suppress(frames.FrameError):
                self.write(frames.encode_json(frames.GOAWAY, 0, {"reason": reason[:1000]}))
            self._transport.close()

    def _abort(self, error: Exception) -> None:
        if self._reason is None:
            self._reason = error
        code = type(error).__name__
        if self._transport is not None and not self._transport.is_closing():
            self.write(frames.encode_json(frames.GOAWAY, 0, {"reason": str(error)[:1000], "code": code}))
            self._transport.close()


def _farewell(message: Mapping[str, Any]) -> Exception:
    reason = str(message.get("reason", "the other side ended the connection"))
    match message.get("code"):
        case "AuthError":
            return AuthError(reason)
        case "ProtocolError":
            return ProtocolError(reason)
    return ConnectionResetError(reason)


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
