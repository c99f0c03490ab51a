"""The guest's end of the link: dials, dials again, and carries the streams that the host opens."""

from __future__ import annotations

import socket
import sys
from collections import deque

from . import frames
from .loop import READ, WRITE, Loop, Timer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Deque, Dict, Optional

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 0.5
HELLO_TIMEOUT = 10.0
HIGH_WATER = 2 * frames.WINDOW
MAX_STREAMS = 4096


class GoodbyeError(Exception):
    """The host ends the link."""


class Handler:
    """What serves one stream. Subclasses take what concerns them."""

    def data(self, payload: bytes) -> None:
        """Bytes arrived; `Stream.took` gives the credit back."""

    def eof(self) -> None:
        """No more data arrives."""

    def message(self, message: Dict[str, Any]) -> None: ...

    def cancel(self) -> None:
        """The host no longer wants the stream, and waits for its CLOSE."""

    def closed(self) -> None:
        """The host has ended a stream that was opened here."""

    def writable(self) -> None:
        """`Stream.room` may have grown."""

    def lost(self) -> None:
        """The link broke."""


class Stream:
    """One stream. This side ends one that the host opened by `close` or `fail`; its own the host ends."""

    def __init__(self, link: Link, stream_id: int) -> None:
        self._link = link
        self.id = stream_id
        self._ours = stream_id % 2 == 1
        self.handler = Handler()
        self.open = True
        self._credit = frames.WINDOW
        self._held = 0
        self._unacknowledged = 0

    def room(self) -> int:
        """How many bytes may be sent now."""
        return self._credit if self.open and not self._link.congested else 0

    @property
    def outstanding(self) -> int:
        """How many bytes were sent for which no credit has come back."""
        return max(0, frames.WINDOW - self._credit)

    def carry_over(self, count: int) -> None:
        """These bytes came by an earlier stream and are held still: they count here."""
        self._held += count

    def send(self, kind: int, data: frames.Buffer) -> None:
        """At most `room` bytes."""
        if self.open:
            self._credit -= len(data)
            self._link.write(frames.header(kind, self.id, len(data)), data)

    def send_message(self, message: Dict[str, Any]) -> None:
        frame = frames.encode_json(frames.MESSAGE, self.id, message)
        if self.open:
            self._credit -= len(frame) - frames.HEADER_SIZE
            self._link.write(frame)

    def send_eof(self) -> None:
        """No more data follows."""
        if self.open:
            self._link.write(frames.encode(frames.EOF, self.id))

    def took(self, count: int) -> None:
        """The handler is done with ``count`` bytes of data."""
        self._held -= count
        self._unacknowledged += count
        if self._unacknowledged >= frames.WINDOW // 2 and self.open:
            self._link.write(frames.encode_credit(self.id, self._unacknowledged))
            self._unacknowledged = 0

    def close(self, result: Dict[str, Any]) -> None:
        self._end({"result": result})

    def fail(self, code: str, message: str, **fields: Any) -> None:
        self._end({"error": dict(fields, code=code, message=message)})

    def cancel(self) -> None:
        """A stream that was opened here is no longer wanted; `Handler.closed` follows."""
        if self.open:
            self._link.write(frames.encode(frames.CANCEL, self.id))

    def _end(self, message: Dict[str, Any]) -> None:
        if self.open:
            self.open = False
            self._link.write(frames.encode_json(frames.CLOSE, self.id, message))
            self._link.forget(self)

    def feed(self, kind: int, payload: bytes) -> None:
        """Raises `frames.FrameError`."""
        if kind == frames.CREDIT:
            self._credit += frames.decode_credit(payload)
            self.handler.writable()
        elif kind == frames.CANCEL and not self._ours:
            self.handler.cancel()
        elif kind == frames.CLOSE and self._ours:
            self.open = False
            self._link.forget(self)
            self.handler.closed()
        elif kind == frames.EOF:
            self.handler.eof()
        elif kind in (frames.DATA, frames.MESSAGE):
            self._held += len(payload)
            if self._held + self._unacknowledged > frames.WINDOW:
                raise frames.FrameError("stream %d was sent more than its credit" % self.id)
            if kind == frames.DATA:
                self.handler.data(payload)
            else:
                self.took(len(payload))
                self.handler.message(frames.decode_json(payload))
        else:
            raise frames.FrameError("frame kind %d does not belong in a stream" % kind)


class Link:
    """Keeps one connection to ``path`` whenever somebody listens there; without a path, takes what it is given.

    ``serve`` is called for each stream that the host opens, and sets its handler or ends it. `open` opens one to it.
    ``met`` is told when there is a link.
    """

    def __init__(
        self,
        loop: Loop,
        path: str,
        hello: Dict[str, Any],
        serve: Callable[[Stream, Dict[str, Any]], None],
        met: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._path = path
        self._hello = hello
        self._serve = serve
        self._tell_met = met
        self._pause = FIRST_PAUSE
        self._socket: Optional[socket.socket] = None
        self._met = False
        self._patience: Optional[Timer] = None
        self._decoder = frames.Decoder()
        self._streams: Dict[int, Stream] = {}
        self._last_id = -1
        self._outbox: Deque[memoryview] = deque()
        self._waiting = 0

    @property
    def congested(self) -> bool:
        return self._waiting > HIGH_WATER

    @property
    def flushed(self) -> bool:
        return not self._outbox

    def dial(self) -> None:
        dialled = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            dialled.connect(self._path)
        except OSError:
            dialled.close()
            self._loop.later(self._pause, self.dial)
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            return
        self.take(dialled)

    def take(self, connected: socket.socket) -> None:
        """Makes this the link, in place of the one before."""
        self._broke()
        connected.setblocking(False)
        self._socket = connected
        self._last_id = -1
        self._decoder = frames.Decoder()
        self._patience = self._loop.later(HELLO_TIMEOUT, self._impatient)
        self._loop.watch(connected.fileno(), READ, self._ready)
        self.write(frames.encode_json(frames.HELLO, 0, self._hello))

    def open(self, request: Dict[str, Any]) -> Optional[Stream]:
        """A stream to the host, to be given a handler; None while there is no link."""
        if not self._met:
            return None
        self._last_id += 2
        stream = self._streams[self._last_id] = Stream(self, self._last_id)
        self.write(frames.encode_json(frames.OPEN, stream.id, request))
        return stream

    def forget(self, stream: Stream) -> None:
        self._streams.pop(stream.id, None)

    def goodbye(self, reason: str) -> None:
        """Tells the host that the guest ends, as far as the socket takes it at once."""
        self.write(frames.encode_json(frames.GOAWAY, 0, {"reason": reason}))

    # Writing

    def write(self, *parts: frames.Buffer) -> None:
        if self._socket is None:
            return
        self._outbox.extend(memoryview(part) for part in parts)
        self._waiting += sum(len(part) for part in parts)
        if len(self._outbox) == len(parts):
            self._flush()

    def _flush(self) -> None:
        assert self._socket is not None
        try:
            while self._outbox:
                sent = self._socket.sendmsg([self._outbox[i] for i in range(min(16, len(self._outbox)))])
                self._waiting -= sent
                while self._outbox and sent >= len(self._outbox[0]):
                    sent -= len(self._outbox.popleft())
                if sent:
                    self._outbox[0] = self._outbox[0][sent:]
        except BlockingIOError:
            self._loop.watch(self._socket.fileno(), READ | WRITE, self._ready)
        except OSError:
            # Whoever wrote goes on undisturbed; the break is told from the loop.
            self._loop.watch(self._socket.fileno(), READ | WRITE, self._broke)

    # Reading

    def _ready(self) -> None:
        if self._socket is None:
            return
        if self._outbox:
            was_congested = self.congested
            self._flush()
            if not self._outbox:
                self._loop.watch(self._socket.fileno(), READ, self._ready)
            if was_congested and not self.congested:
                for stream in list(self._streams.values()):
                    stream.handler.writable()
        try:
            data = self._socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._broke()
            return
        try:
            for frame in self._decoder.feed(data):
                self._dispatch(frame)
        except GoodbyeError:
            self._broke()
        except frames.FrameError as error:
            print("the host broke the protocol: %s" % error, file=sys.stderr)
            self._broke()

    def _dispatch(self, frame: frames.Frame) -> None:
        if not self._met:
            self._meet(frame)
        elif frame.kind == frames.OPEN:
            self._open(frame)
        elif frame.kind == frames.HELLO:
            raise frames.FrameError("a second HELLO")
        elif frame.kind == frames.PING:
            self.write(frames.encode(frames.PONG, 0, frame.payload))
        elif frame.kind == frames.GOAWAY:
            raise GoodbyeError
        elif frame.kind != frames.PONG:
            stream = self._streams.get(frame.stream)
            if stream is not None:
                stream.feed(frame.kind, frame.payload)

    def _meet(self, frame: frames.Frame) -> None:
        if frame.kind != frames.HELLO:
            raise frames.FrameError("no HELLO, but kind %d: %r" % (frame.kind, frame.payload[:200]))
        hello = frames.decode_json(frame.payload)
        if hello.get("major") != frames.MAJOR:
            raise frames.FrameError("version %r is not spoken here" % (hello.get("major"),))
        self._met = True
        self._pause = FIRST_PAUSE
        if self._patience is not None:
            self._patience.cancel()
        self._tell_met()

    def _open(self, frame: frames.Frame) -> None:
        if frame.stream % 2 or frame.stream == 0 or frame.stream in self._streams:
            raise frames.FrameError("stream %d cannot be opened by the host" % frame.stream)
        stream = Stream(self, frame.stream)
        request = frames.decode_json(frame.payload)
        if len(self._streams) >= MAX_STREAMS:
            stream.fail("UnavailableError", "too many streams")
            return
        self._streams[stream.id] = stream
        self._serve(stream, request)

    # The end

    def _impatient(self) -> None:
        if not self._met:
            self._broke()

    def _broke(self) -> None:
        """One link at a time: what was open on this one is told, then the guest dials again where it can."""
        if self._socket is None:
            return
        if self._patience is not None:
            self._patience.cancel()
        self._loop.unwatch(self._socket.fileno())
        self._socket.close()
        self._socket = None
        self._met = False
        self._outbox.clear()
        self._waiting = 0
        lost = list(self._streams.values())
        self._streams.clear()
        for stream in lost:
            stream.open = False
            stream.handler.lost()
        if self._path:
            self._loop.later(self._pause, self.dial)
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
