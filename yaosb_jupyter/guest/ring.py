"""Bytes with absolute offsets that may have to be sent again; both ends of a link keep them."""

from __future__ import annotations

from bisect import bisect_right

from .frames import Buffer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Tuple, Union

CAPACITY = 1 << 20
MAX_PIECES = 4096
"""Many small pieces cost more than their bytes."""
SMALL = 4096
"""Smaller ones of a kind are put together."""
FULL_PIECE = 1 << 16


class Ring:
    """Pieces of data, each of one kind. Offsets count the bytes of all kinds, from ``start`` on."""

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self.end = start
        self._offsets: List[int] = []
        self._pieces: List[Tuple[int, Union[bytes, bytearray]]] = []

    @property
    def held(self) -> int:
        return self.end - self.start

    def room(self) -> int:
        return CAPACITY - self.held if len(self._pieces) < MAX_PIECES else 0

    def append(self, kind: int, data: bytes) -> None:
        if len(data) < SMALL:
            self._append_small(kind, data)
        else:
            self._add(kind, data)
        self.end += len(data)

    def _append_small(self, kind: int, data: bytes) -> None:
        if self._pieces:
            last_kind, last = self._pieces[-1]
            if last_kind == kind and isinstance(last, bytearray) and len(last) < FULL_PIECE:
                last += data
                return
        self._add(kind, bytearray(data))

    def _add(self, kind: int, data: Union[bytes, bytearray]) -> None:
        self._offsets.append(self.end)
        self._pieces.append((kind, data))

    def read(self, position: int, most: int) -> Tuple[int, Buffer]:
        """The kind and at most ``most`` bytes at ``position``, which is held."""
        index = bisect_right(self._offsets, position) - 1
        kind, data = self._pieces[index]
        begin = position - self._offsets[index]
        if isinstance(data, bytearray):  # it may grow, which it cannot while somebody looks at it
            return kind, bytes(data[begin : begin + most])
        return kind, memoryview(data)[begin : begin + most]

    def release(self, upto: int) -> None:
        """What is before ``upto`` is not needed any more."""
        if upto <= self.start:
            return
        self.start = min(upto, self.end)
        count = len(self._pieces) if self.start == self.end else bisect_right(self._offsets, self.start) - 1
        del self._pieces[:count]
        del self._offsets[:count]

    def skip(self, upto: int) -> None:
        """Goes on at ``upto``, where that is beyond the end: what is before went another way."""
        if upto > self.end:
            self.release(self.end)
            self.start = self.end = upto

    def trim(self) -> None:
        """Drops the oldest until there is room."""
        if self.held > CAPACITY:
            self.release(self.end - CAPACITY)
        if len(self._pieces) > MAX_PIECES:
            self.release(self._offsets[len(self._pieces) - MAX_PIECES])
