"""What the main process wrote: the last of it, and what follows for those who listen."""

from __future__ import annotations

import time
from collections import deque

from . import frames
from .link import Handler, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

    Chunk = Tuple[float, int, bytes]


class Ring:
    """Output with the time of its arrival (seconds since 1970); beyond ``capacity`` bytes the oldest is dropped."""

    def __init__(self, capacity: int = 1 << 20) -> None:
        self._capacity = capacity
        self._chunks: Deque[Chunk] = deque()
        self._size = 0
        self._count = 0
        self._followers: List[Callable[[], None]] = []

    def room(self) -> int:
        return 1 << 16

    def send(self, kind: int, data: bytes) -> None:
        self._chunks.append((time.time(), kind, data))
        self._count += 1
        self._size += len(data)
        while self._size > self._capacity:
            self._size -= len(self._chunks.popleft()[2])
        self.wake()

    def wake(self) -> None:
        for tell in list(self._followers):
            tell()

    def read(self, position: int) -> Tuple[int, Optional[Chunk]]:
        """The chunk at ``position``, or the oldest after it, and the position of the next."""
        first = self._count - len(self._chunks)
        position = max(position, first)
        if position >= self._count:
            return position, None
        return position + 1, self._chunks[position - first]

    def position(self, tail: Optional[int], since: float) -> Tuple[int, int]:
        """Where the last ``tail`` lines written after ``since`` begin: a chunk, and how much of it to leave out."""
        if tail == 0:
            return self._count, 0
        first = self._count - len(self._chunks)
        lines = 0
        for index in range(len(self._chunks) - 1, -1, -1):
            when, _, data = self._chunks[index]
            if when < since:
                return first + index + 1, 0
            if tail is not None:
                end = len(data) - 1 if index == len(self._chunks) - 1 and data.endswith(b"\n") else len(data)
                while (end := data.rfind(b"\n", 0, max(end, 0))) >= 0:
                    lines += 1
                    if lines == tail:
                        return first + index, end + 1
        return first, 0

    def follow(self, tell: Callable[[], None]) -> None:
        self._followers.append(tell)

    def unfollow(self, tell: Callable[[], None]) -> None:
        if tell in self._followers:
            self._followers.remove(tell)


class LogStream(Handler):
    """Sends the ring's content, and what follows if asked to, until the host cancels or the main process ends."""

    def __init__(
        self,
        ring: Ring,
        stream: Stream,
        request: Dict[str, Any],
        over: Callable[[], bool],
        all_sent: Callable[[], None],
    ) -> None:
        self._ring = ring
        self._stream = stream
        self._follow = bool(request.get("follow"))
        self._over = over
        self._all_sent = all_sent
        self._position, self._skip = ring.position(request.get("tail"), float(request.get("since") or 0))
        self._rest = b""
        self._kind = frames.DATA
        stream.handler = self
        ring.follow(self.writable)
        self.writable()

    def writable(self) -> None:
        while self._stream.open and self._stream.room() > 0:
            if not self._rest:
                self._position, chunk = self._ring.read(self._position)
                if chunk is None:
                    if self._over():
                        self._all_sent()
                        self._end()
                    elif not self._follow:
                        self._end()
                    return
                self._kind, self._rest, self._skip = chunk[1], chunk[2][self._skip :], 0
                continue
            piece = self._rest[: self._stream.room()]
            self._rest = self._rest[len(piece) :]
            self._stream.send(self._kind, piece)

    def cancel(self) -> None:
        self._end()

    def lost(self) -> None:
        self._ring.unfollow(self.writable)

    def _end(self) -> None:
        self._ring.unfollow(self.writable)
        self._stream.close({})
