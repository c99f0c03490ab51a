"""The frames of a link: one codec for guest, daemon and clients (see docs/link-protocol.md).

A frame is a header of nine bytes (payload length, kind, stream id; big endian) and a payload of at most 1 MiB.
The side that dialled opens streams with odd ids, the other with even ids; id 0 is the connection itself.
"""

from __future__ import annotations

import json
import struct
from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, TypeAlias

MAJOR = 1
MINOR = 0

MAX_PAYLOAD = 1 << 20
WINDOW = 1 << 20

HELLO = 1  # JSON, first frame of each side
OPEN = 2  # JSON {"op": name, ...}: a new stream
MESSAGE = 3  # JSON, within a stream
DATA = 4  # bytes: stdin, stdout, a file's content
DATA_ERR = 5  # bytes: stderr
EOF = 6  # the sender writes no more DATA on this stream
CREDIT = 7  # four bytes: how many more data bytes the receiver takes
CLOSE = 8  # JSON {"result": ...} or {"error": {...}}: ends the stream, sent by the side that was called
CANCEL = 9  # the caller no longer wants the stream; answered by CLOSE
PING = 10  # answered by PONG with the same payload
PONG = 11
GOAWAY = 12  # JSON {"reason": text}: the sender is about to end the connection

KINDS = frozenset(range(HELLO, GOAWAY + 1))

_HEADER = struct.Struct("!IBI")
HEADER_SIZE = _HEADER.size
_CREDIT = struct.Struct("!I")

Buffer: TypeAlias = "bytes | bytearray | memoryview"


class FrameError(Exception):
    """The other side sent what is no frame; the connection cannot go on."""


class Frame(namedtuple("Frame", ("kind", "stream", "payload"))):
    __slots__ = ()

    kind: int
    stream: int
    payload: bytes


def header(kind: int, stream: int, length: int) -> bytes:
    return _HEADER.pack(length, kind, stream)


def encode(kind: int, stream: int, payload: Buffer = b"") -> bytes:
    """One frame. Raises `FrameError` for a payload above `MAX_PAYLOAD`."""
    if len(payload) > MAX_PAYLOAD:
        raise FrameError("a payload of %d bytes is over the limit of %d" % (len(payload), MAX_PAYLOAD))
    return b"".join((_HEADER.pack(len(payload), kind, stream), payload))


def encode_json(kind: int, stream: int, message: Dict[str, Any]) -> bytes:
    return encode(kind, stream, json.dumps(message, separators=(",", ":")).encode())


def cut(text: str, size: int) -> str:
    """The beginning of ``text`` that takes at most ``size`` bytes of JSON, about."""
    while text and len(json.dumps(text)) > size:
        text = text[: len(text) // 2]
    return text


def encode_credit(stream: int, count: int) -> bytes:
    return encode(CREDIT, stream, _CREDIT.pack(count))


def decode_json(payload: Buffer) -> Dict[str, Any]:
    """The object in ``payload``. Raises `FrameError` for anything else, and for NaN, which no clock goes on with."""
    try:
        message = json.loads(bytes(payload), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise FrameError("a control message is not JSON: %s" % error) from None
    if not isinstance(message, dict):
        raise FrameError("a control message is not an object")
    return message


def _no_number(word: str) -> None:
    raise ValueError("%s is no number" % word)


def decode_credit(payload: Buffer) -> int:
    if len(payload) != _CREDIT.size:
        raise FrameError("a credit of %d bytes" % len(payload))
    count = _CREDIT.unpack(payload)[0]
    return int(count)


class Decoder:
    """Cuts a byte stream into frames; holds at most one unfinished frame."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: Buffer) -> Iterator[Frame]:
        """The frames that ``data`` completes. Raises `FrameError`; the decoder is of no use after that."""
        self._buffer += data
        offset = 0
        try:
            while len(self._buffer) - offset >= HEADER_SIZE:
                length, kind, stream = _HEADER.unpack_from(self._buffer, offset)
                if length > MAX_PAYLOAD:
                    raise FrameError("a frame of %d bytes is over the limit of %d" % (length, MAX_PAYLOAD))
                if kind not in KINDS:
                    raise FrameError("frame kind %d is unknown" % kind)
                end = offset + HEADER_SIZE + length
                if len(self._buffer) < end:
                    break
                payload = bytes(memoryview(self._buffer)[offset + HEADER_SIZE : end])
                offset = end
                yield Frame(kind, stream, payload)
        finally:
            if offset:
                del self._buffer[:offset]
