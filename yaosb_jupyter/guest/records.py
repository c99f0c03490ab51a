"""A tree of files as one stream of bytes (see docs/link-protocol.md): records of a header, a name and content.

Names are single ones, never paths: a directory's record enters it, `LEAVE` leaves it. So no stream can name a place
outside of the directory it is unpacked into.
"""

from __future__ import annotations

import struct
from typing import Iterator, NamedTuple

from .frames import Buffer

FILE = 1  # a file and the first of its content; the next record that is no MORE makes it whole
MORE = 2  # more content of the file before
ENTER = 3  # a directory, and what follows is in it
LEAVE = 4
SKIP = 5  # a link or special file that is left out
TOTAL = 6  # content: bytes of all files; mtime: how many of FILE, ENTER and SKIP come, or 0; the first record
END = 7
STAMP = 8  # a file as it is there, without its content: see `yaosb_jupyter.guest.manifest`

MAX_CONTENT = 1 << 18
MAX_NAME = 255
MAX_DEPTH = 256

_HEADER = struct.Struct("!BHqHI")  # kind, mode, mtime, length of the name, length of the content
_TOTAL = struct.Struct("!Q")


class RecordError(Exception):
    """What came is no tree; nothing more of it is taken."""


class Record(NamedTuple):
    kind: int
    name: str
    mode: int
    mtime: int  # nanoseconds since 1970
    content: Buffer


def encode(kind: int, name: str = "", mode: int = 0, content: bytes = b"", mtime: int = 0) -> bytes:
    raw = name.encode("utf-8", "surrogateescape")
    return b"".join((_HEADER.pack(kind, mode & 0o777, mtime, len(raw), len(content)), raw, content))


def encode_total(size: int, entries: int = 0) -> bytes:
    return encode(TOTAL, content=_TOTAL.pack(size), mtime=entries)


def decode_total(content: Buffer) -> int:
    if len(content) != _TOTAL.size:
        raise RecordError("a total of %d bytes" % len(content))
    return int(_TOTAL.unpack(content)[0])


class Decoder:
    """Cuts a byte stream into records; holds at most one unfinished record."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: Buffer) -> Iterator[Record]:
        """The records that ``data`` completes; to be exhausted. Raises `RecordError`."""
        whole = self._held + bytes(data) if self._held else bytes(data)
        view = memoryview(whole)
        offset = 0
        while len(whole) - offset >= _HEADER.size:
            kind, mode, mtime, name_length, length = _HEADER.unpack_from(whole, offset)
            if not FILE <= kind <= STAMP or name_length > MAX_NAME or length > MAX_CONTENT:
                raise RecordError("a record of kind %d with %d and %d bytes" % (kind, name_length, length))
            content = offset + _HEADER.size + name_length
            if len(whole) < content + length:
                break
            name = checked_name(whole[content - name_length : content])
            offset = content + length
            yield Record(kind, name, mode & 0o777, mtime, view[content:offset])
        self._held = whole[offset:]


def checked_name(raw: bytes) -> str:
    """Raises `RecordError` for what cannot be the name of one file; empty is that of the tree itself."""
    if raw in (b".", b"..") or b"/" in raw or b"\0" in raw:
        raise RecordError("the impossible name %r" % raw[:100])
    return raw.decode("utf-8", "surrogateescape")
