"""The engine's multiplexed output: a header of eight bytes before each piece of stdout or stderr."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import TypeVar

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.errors import ProtocolError

Data = TypeVar("Data", bytes, memoryview)

_HEADER = struct.Struct("!B3xI")
_CHANNELS = {0: ExecChannel.STDOUT, 1: ExecChannel.STDOUT, 2: ExecChannel.STDERR, 3: ExecChannel.STDERR}


class Demultiplexer:
    """Cuts the stream into pieces as they come; holds at most an unfinished header."""

    def __init__(self) -> None:
        self._header = b""
        self._left = 0
        self._channel = ExecChannel.STDOUT

    def feed(self, data: Data) -> Iterator[tuple[ExecChannel, Data]]:
        """The pieces in ``data``, of its kind. Raises `ProtocolError` for what is no such stream."""
        offset = 0
        while offset < len(data):
            if self._left:
                piece = data[offset : offset + self._left]
                self._left -= len(piece)
                offset += len(piece)
                yield self._channel, piece
                continue
            wanted = _HEADER.size - len(self._header)
            self._header += bytes(data[offset : offset + wanted])
            offset += wanted
            if len(self._header) == _HEADER.size:
                number, self._left = _HEADER.unpack(self._header)
                if number not in _CHANNELS:
                    raise ProtocolError(f"the engine sent output of an unknown channel {number}")
                self._channel = _CHANNELS[number]
                self._header = b""


class ReportFinder:
    """Finds the wrapper's report in one channel: ``nonce``, ``!`` where the command could not start, code, ``;``."""

    def __init__(self, nonce: bytes) -> None:
        self._nonce = nonce
        self._pattern = re.compile(re.escape(nonce) + rb"(!?)(\d{1,3});")
        self._held = b""

    def feed(self, data: bytes) -> tuple[bytes, Report | None]:
        """What is the command's in ``data``, and the report where it has come; what follows a report is dropped."""
        data = self._held + data
        self._held = b""
        if match := self._pattern.search(data):
            return data[: match.start()], Report(int(match[2]), bool(match[1]))
        start = data.rfind(self._nonce[:1], max(0, len(data) - len(self._nonce) - 5))
        if start >= 0 and self._may_begin(data[start:]):
            self._held = data[start:]
            return data[:start], None
        return data, None

    def rest(self) -> bytes:
        """What was held back, when no report came."""
        held, self._held = self._held, b""
        return held

    def _may_begin(self, tail: bytes) -> bool:
        return self._nonce.startswith(tail) or tail.startswith(self._nonce)


class Report:
    """How the command ended, or that it ``failed`` to start."""

    __slots__ = ("code", "failed")

    def __init__(self, code: int, failed: bool) -> None:
        self.code = code
        self.failed = failed
