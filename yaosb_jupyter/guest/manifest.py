"""What files a tree has, told without their content, so that whoever sends one leaves out what is there already."""

from __future__ import annotations

import errno
import os
import stat
import struct
from typing import Callable, Dict, Generator, Iterator, List, NamedTuple, Optional

from . import records
from .confined import READ
from .frames import Buffer
from .walk import walk

BATCH = 1 << 18
MOST_FILES = 250_000
MOST_TEXT = 1 << 26

_SIZE = struct.Struct("!Q")
_DIGEST = 32

Digest = Generator[bytes, None, bytes]


class Stamp(NamedTuple):
    """A file as it is: ``mtime`` in nanoseconds since 1970, ``digest`` the SHA-256 of its content or empty."""

    size: int
    mode: int
    mtime: int
    digest: bytes = b""


def stamp_of(status: os.stat_result) -> Stamp:
    return Stamp(status.st_size, status.st_mode & 0o777, status.st_mtime_ns)


def encode_stamp(name: str, stamp: Stamp) -> bytes:
    return records.encode(records.STAMP, name, stamp.mode, _SIZE.pack(stamp.size) + stamp.digest, stamp.mtime)


def decode_stamp(record: records.Record) -> Stamp:
    size, digest = bytes(record.content[: _SIZE.size]), bytes(record.content[_SIZE.size :])
    if len(size) != _SIZE.size or len(digest) not in (0, _DIGEST):
        raise records.RecordError("a stamp of %d bytes" % len(record.content))
    return Stamp(_SIZE.unpack(size)[0], record.mode, record.mtime, digest)


def is_same(stamp: Stamp, status: os.stat_result, digest: Digest) -> Generator[bytes, None, bool]:
    """Whether a file is as the stamp tells: its content where that has a digest, else its time. In steps."""
    here = stamp_of(status)
    if (here.size, here.mode) != (stamp.size, stamp.mode):
        return False
    if not stamp.digest:
        return here.mtime == stamp.mtime
    return (yield from digest) == stamp.digest


def digest_of(directory: Optional[int], name: str) -> Digest:
    """Of a file's content; empty for what cannot be read, or is no file. In steps, which give nothing."""
    try:
        fd = os.open(name, READ | os.O_NOFOLLOW, dir_fd=directory)
    except OSError:
        return b""
    try:
        return (yield from digest_of_open(fd))
    finally:
        os.close(fd)


def digest_of_open(fd: int) -> Digest:
    from hashlib import sha256

    status, found = os.fstat(fd), sha256()
    if not stat.S_ISREG(status.st_mode):
        return b""
    left = status.st_size
    while left > 0:
        data = os.pread(fd, min(left, records.MAX_CONTENT), status.st_size - left)
        if not data:
            return b""  # cut shorter meanwhile
        left -= len(data)
        found.update(data)
        yield b""
    return found.digest()


def survey(open_top: Callable[[], int], checksum: bool) -> Iterator[bytes]:
    """The manifest of the file or directory that is opened, with digests if ``checksum``. Raises `TreeError`.

    In pieces; empty ones are steps without any.
    """
    top = open_top()
    try:
        status = os.fstat(top)
        if not stat.S_ISDIR(status.st_mode):
            digest = (yield from digest_of_open(top)) if checksum else b""
            yield encode_stamp("", stamp_of(status)._replace(digest=digest))
            return
        pending = bytearray(records.encode(records.ENTER))
        for place in walk(top, stats=True):
            if place.kind == records.FILE and place.status:
                digest = (yield from digest_of(place.directory, place.name)) if checksum else b""
                pending += encode_stamp(place.name, stamp_of(place.status)._replace(digest=digest))
            elif place.kind != records.SKIP:
                pending += records.encode(place.kind, place.name)
            yield b""
            if len(pending) > BATCH:
                yield bytes(pending)
                pending.clear()
        yield bytes(pending)
    finally:
        os.close(top)


class Manifest:
    """Takes such a manifest, whoever sent it: ``stamps`` by path, of the first files if there are too many."""

    def __init__(self) -> None:
        self.stamps: Dict[str, Stamp] = {}
        self._decoder = records.Decoder()
        self._above: List[str] = []
        self._text = 0

    def feed(self, data: Buffer) -> Iterator[None]:
        """To be exhausted. Raises `RecordError`."""
        for record in self._decoder.feed(data):
            path = below(self._above, record)
            if record.kind == records.STAMP and not self.full:
                self.stamps[path] = decode_stamp(record)
                self._text += len(path)
            yield

    @property
    def full(self) -> bool:
        """More is not taken."""
        return len(self.stamps) >= MOST_FILES or self._text > MOST_TEXT


def below(above: List[str], record: records.Record) -> str:
    """The path of what a record of a manifest is about; ``above`` keeps those of the directories around it."""
    if record.kind == records.LEAVE and above:
        return above.pop()
    if record.kind not in (records.ENTER, records.STAMP) or bool(record.name) != bool(above):
        raise records.RecordError("a record of kind %d where it cannot be" % record.kind)
    path = "%s/%s" % (above[-1], record.name) if above and above[-1] else record.name
    if record.kind == records.ENTER:
        if len(above) >= records.MAX_DEPTH:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        above.append(path)
    return path
