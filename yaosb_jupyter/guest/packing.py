"""A file or a directory tree as a stream of records."""

from __future__ import annotations

import errno
import os
import stat
from typing import Callable, Generator, Iterator, List, Mapping, Set

from . import records
from .confined import READ
from .manifest import BATCH, Digest, Stamp, digest_of, digest_of_open, is_same
from .walk import Place, TreeError, walk

MOST_TOLD = 1000
READ_AHEAD = 2 << 20
"""Bytes of the stream that are held until the total is known."""
_CHANGED = (errno.ENOENT, errno.ELOOP, errno.ENXIO)


class Packer:
    """Packs what ``open_top`` opens to be read: a file or a directory, without the files that are as ``there`` tells.

    It counts while it goes: ``files``, ``entries`` of all kinds of those ``coming``, ``done`` bytes of ``total``,
    ``path`` where it is, ``skipped`` paths (the first of them), which are those of links and special files. Where
    nobody wants to know the total, it is not ``measured``.
    """

    def __init__(self, open_top: Callable[[], int], there: Mapping[str, Stamp], *, measured: bool = True) -> None:
        self._open_top = open_top
        self._there = there
        self._measured = measured
        self._same: Set[str] = set()
        self._pending = bytearray()
        self.path = ""
        self.files = 0
        self.entries = 0
        self.coming = 0
        self.done = 0
        self.total = 0
        self.skipped: List[str] = []

    @property
    def unchanged(self) -> int:
        """Files that are left out, since they are there."""
        return len(self._same)

    def steps(self) -> Iterator[bytes]:
        """The stream in pieces of at most 512 KiB; empty ones are steps without any. Raises `TreeError`."""
        top = self._open_top()
        try:
            status = os.fstat(top)
            if stat.S_ISDIR(status.st_mode):
                packed = self._pack_directory(top, status.st_mode)
                if self._there:
                    yield from self._measure(top)
                    yield records.encode_total(self.total, self.coming)
                elif self._measured:
                    yield from self._measure_by_packing(top, packed)
                yield from packed
            elif (yield from self._is_there("", status, digest_of_open(top))):
                self._put(records.encode(records.SKIP))
            else:
                self.total = status.st_size
                self._put(records.encode_total(self.total))
                yield from self._pack_file(top, "", status)
            self._put(records.encode(records.END))
            yield self._take()
        finally:
            os.close(top)

    def _measure_by_packing(self, top: int, packed: Iterator[bytes]) -> Iterator[bytes]:
        """The beginning of ``packed`` and the total before it: so a small tree is walked but once."""
        held: List[bytes] = []
        size = 0
        for piece in packed:
            if piece:
                held.append(piece)
                size += len(piece)
            if size > READ_AHEAD:
                yield from self._measure(top)
                break
            yield b""
        else:
            self.total, self.coming = self.done, self.entries
        yield records.encode_total(self.total, self.coming)
        yield from held

    def _measure(self, top: int) -> Iterator[bytes]:
        self.coming = 1
        for place in walk(top, stats=True):
            if place.kind == records.FILE and place.status:
                digest = digest_of(place.directory, place.name)
                if not (yield from self._is_there(place.path, place.status, digest)):
                    self.total += place.status.st_size
                    self.coming += 1
            elif place.kind != records.LEAVE:
                self.coming += 1
            yield b""

    def _is_there(self, path: str, status: os.stat_result, digest: Digest) -> Generator[bytes, None, bool]:
        stamp = self._there.get(path)
        if stamp is None or not (yield from is_same(stamp, status, digest)):
            return False
        self._same.add(path)
        return True

    def _pack_directory(self, top: int, mode: int) -> Iterator[bytes]:
        self._put(records.encode(records.ENTER, "", mode))
        self.entries = 1
        for place in walk(top, stats=False):
            self.path = place.path
            self.entries += place.kind != records.LEAVE and place.path not in self._same
            if place.kind == records.FILE:
                if place.path not in self._same:
                    yield from self._pack_entry(place)
            elif place.kind == records.SKIP:
                self._skip(place)
            else:
                self._put(records.encode(place.kind, place.name, place.status.st_mode if place.status else 0))
            yield self._take() if len(self._pending) >= BATCH else b""

    def _pack_entry(self, place: Place) -> Iterator[bytes]:
        try:
            fd = os.open(place.name, READ | os.O_NOFOLLOW, dir_fd=place.directory)
        except OSError as error:
            if error.errno in _CHANGED:  # since the directory was read
                return
            raise TreeError.of(error, place.path) from error
        try:
            status = os.fstat(fd)
            if stat.S_ISREG(status.st_mode):
                yield from self._pack_file(fd, place.name, status)
        except OSError as error:
            raise TreeError.of(error, place.path) from error
        finally:
            os.close(fd)

    def _pack_file(self, fd: int, name: str, status: os.stat_result) -> Iterator[bytes]:
        """As it was when it was opened: what is written to it later is not waited for."""
        kind, left = records.FILE, status.st_size
        while True:
            content = os.read(fd, min(left, records.MAX_CONTENT)) if left else b""
            if content or kind == records.FILE:
                self._put(records.encode(kind, name, status.st_mode, content, status.st_mtime_ns))
            left -= len(content)
            self.done += len(content)
            if not content or not left:
                break
            kind, name = records.MORE, ""
            yield self._take()
        self.files += 1

    def _skip(self, place: Place) -> None:
        self._put(records.encode(records.SKIP, place.name))
        if len(self.skipped) < MOST_TOLD:
            self.skipped.append(place.path)

    def _put(self, record: bytes) -> None:
        self._pending += record

    def _take(self) -> bytes:
        taken = bytes(self._pending)
        self._pending.clear()
        return taken
