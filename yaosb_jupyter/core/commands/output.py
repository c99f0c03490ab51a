"""Turning a command's bytes into what its caller asked for: decoded without cutting characters, and bounded."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Callable
from typing import Any

DEFAULT_MAX_OUTPUT = 10 * 2**20

Decode = Callable[[bytes, bool], Any]
"""Bytes as they arrive, and whether they are the last -> text, or bytes. Half a character waits for the rest."""


def decoder(encoding: str | None, errors: str) -> Decode:
    """For one output of one command. ``encoding`` None leaves bytes as they are. Raises `LookupError`."""
    if encoding is None:
        return lambda data, _final: data
    return codecs.getincrementaldecoder(encoding)(errors).decode


class Tail:
    """Keeps the last ``limit`` bytes of what it is given; ``dropped`` counts the others."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self.dropped = 0

    def add(self, data: bytes) -> None:
        self._chunks.append(data)
        self._size += len(data)
        while self._size > self._limit:
            excess = self._size - self._limit
            first = self._chunks.popleft()
            cut = min(excess, len(first))
            if cut < len(first):
                self._chunks.appendleft(first[cut:])
            self._size -= cut
            self.dropped += cut

    def decoded(self, encoding: str | None, errors: str) -> Any:
        """All that was kept. Where its beginning was dropped, a character cut in two goes with it."""
        data = b"".join(self._chunks)
        if encoding is None:
            return data
        if self.dropped and codecs.lookup(encoding).name == "utf-8":
            torn = min(3, len(data))  # a character has at most three bytes after its first
            start = next((index for index in range(torn) if data[index] & 0xC0 != 0x80), torn)
            data = data[start:]
        return data.decode(encoding, errors)
