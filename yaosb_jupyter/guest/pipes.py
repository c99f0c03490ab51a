"""What a command writes to and reads from, seen from the guest."""

from __future__ import annotations

import array
import fcntl
import os
import termios

from .loop import READ, WRITE, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, List, Optional, Protocol, Tuple

    class Sink(Protocol):
        """Where output goes; `room` 0 makes the command wait."""

        def room(self) -> int: ...

        def send(self, kind: int, data: bytes) -> None: ...


CHUNK = 1 << 18
PIPE_SIZE = 1 << 18


def output_pipe() -> Tuple[int, int]:
    """The reading and the writing end."""
    reading, writing = os.pipe()
    try:
        fcntl.fcntl(reading, getattr(fcntl, "F_SETPIPE_SZ", 1031), PIPE_SIZE)
    except OSError:
        pass  # beyond this user's share of pipe memory; smaller ones do
    return reading, writing


class Output:
    """The reading end of an output, of which ``ended`` is told that nothing follows."""

    def __init__(self, loop: Loop, kind: int, fd: int, sink: Sink, ended: Callable[[], None]) -> None:
        self._loop = loop
        self._kind = kind
        self._fd = fd
        self._sink = sink
        self._tell_ended = ended
        self._left: Optional[int] = None
        self._leaves = False
        self._lent = False
        self._wanted_back = False
        os.set_blocking(fd, False)
        self.ended = False

    def resume(self) -> None:
        if not self.ended and not self._lent:
            self._loop.watch(self._fd, READ, self._readable)

    def lend(self) -> Optional[int]:
        """The descriptor, which is left alone until `lent` is told; None where there is none, or it is lent already."""
        if self.ended or self._lent:
            return None
        self._lent = True
        self._wanted_back = False
        self._loop.unwatch(self._fd)
        return self._fd

    def lent(self, taken: bool) -> None:
        """Whether somebody else reads it: then nothing follows here, until it is taken back."""
        if taken and not self._wanted_back:
            self.ended = True
            self._tell_ended()
        else:
            self._read_again()

    def take_back(self) -> bool:
        """Whether somebody else has read it. From here on, or as soon as `lent` is told, it is read here."""
        taken = self._lent and self.ended and self._fd >= 0
        self._wanted_back = True
        if taken:
            self._read_again()
        return taken

    def _read_again(self) -> None:
        self._lent = self.ended = False
        self.resume()
        if self._leaves:
            self.leave_after_rest()

    def leave_after_rest(self) -> None:
        """Whoever else holds the other end is not waited for: what is there now is the last."""
        self._leaves = True
        if not self.ended and not self._lent:
            held = array.array("i", [0])
            fcntl.ioctl(self._fd, termios.FIONREAD, held)
            self._left = held[0]
            if self._left == 0:
                self._end()

    def _readable(self) -> None:
        room = min(self._sink.room(), CHUNK, CHUNK if self._left is None else self._left)
        if room <= 0:
            self._loop.unwatch(self._fd)
            return
        try:
            data = os.read(self._fd, room)
        except BlockingIOError:
            return
        except OSError:  # how a terminal tells that nobody holds it any more
            data = b""
        if data:
            self._sink.send(self._kind, data)
            if self._left is not None:
                self._left -= len(data)
        if not data or self._left == 0:
            self._end()

    def _end(self) -> None:
        self.close()
        self._tell_ended()

    def close(self) -> None:
        self.ended = True
        if self._fd >= 0:
            self._loop.unwatch(self._fd)
            os.close(self._fd)
            self._fd = -1


class Input:
    """The writing end of stdin. ``took`` is told what the command has read, or will never read.

    ``farewell`` is written at the end of the input; without one, the end is closed.
    """

    def __init__(self, loop: Loop, fd: int, took: Callable[[int], None], farewell: bytes = b"") -> None:
        self._loop = loop
        self._fd = fd
        self._took = took
        self._farewell = farewell
        self._waiting: List[memoryview] = []
        self.waiting = 0
        self.received = 0
        self._eof = False
        self._closed = False
        os.set_blocking(fd, False)

    def write(self, data: bytes) -> None:
        self.received += len(data)
        if self._closed:
            self._took(len(data))
            return
        self.waiting += len(data)
        self._waiting.append(memoryview(data))
        if len(self._waiting) == 1:
            self._flush()

    def finish(self) -> None:
        """Idempotent."""
        if self._eof:
            return
        self._eof = True
        if not self._waiting:
            self._say_farewell()

    def _flush(self) -> None:
        try:
            while self._waiting:
                written = os.write(self._fd, self._waiting[0])
                self._waiting[0] = self._waiting[0][written:]
                if not self._waiting[0]:
                    del self._waiting[0]
                self._note(written)
        except BlockingIOError:
            self._loop.watch(self._fd, WRITE, self._flush)
            return
        except OSError:  # nobody reads it any more
            self.close()
            return
        self._loop.unwatch(self._fd)
        if self._eof:
            self._say_farewell()

    def _say_farewell(self) -> None:
        if not self._farewell:
            self.close()
        elif not self._closed:
            try:
                os.write(self._fd, self._farewell)
            except OSError:
                self.close()

    def _note(self, count: int) -> None:
        self.waiting -= count
        self._took(count)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._loop.unwatch(self._fd)
            os.close(self._fd)
            self._waiting.clear()
            self._note(self.waiting)
