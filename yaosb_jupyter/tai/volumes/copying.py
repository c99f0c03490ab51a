"""Copying a single file from one descriptor to another: in the kernel, where it can."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from yaosb_jupyter.guest.confined import READ, file_or_directory
from yaosb_jupyter.guest.manifest import Stamp, digest_of, digest_of_open, is_same, stamp_of
from yaosb_jupyter.guest.staging import write_all
from yaosb_jupyter.tai.volumes.descriptors import NewFile, OpenFile, opened, staged
from yaosb_jupyter.tai.volumes.limits import CopyLimits
from yaosb_jupyter.tai.volumes.trees import Here, Report, Steps, in_slices, told_of
from yaosb_jupyter.types import Copied, CopyProgress

if TYPE_CHECKING:
    from yaosb_jupyter.tai.volumes.base import Volume

_PIECE = 4 << 20
_RESERVE = 1 << 26
_READ = 1 << 20
_NOT_THIS_WAY = frozenset({errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF})
"""What the kernel says where two files cannot be copied like this."""


async def push_file(
    volume: Volume, source: Path, target: str, there: Mapping[str, Stamp], tell: Report | None
) -> Copied | None:
    """`Volume.push` of a single file to a volume that has descriptors; None where it is another case."""
    async with opened(lambda: file_or_directory(os.open(source, READ)), str(source)) as file:
        if file is None:
            return None
        if "" in there and await _is_same(lambda: _is_there(file, there[""]), str(source)):
            return _unchanged(target, tell)
        async with volume.staged(target, mode=file.mode) as new:
            return None if new is None else await _copy(file, new, target, tell)


async def pull_file(
    volume: Volume, source: str, target: Path, tell: Report | None, *, checksum: bool, limits: CopyLimits | None
) -> Copied | None:
    """`Volume.pull` in the same way."""
    async with volume.opened(source) as file:
        if file is None:
            return None
        if await _is_same(lambda: _is_here(file, target, checksum=checksum), str(target)):
            return _unchanged(str(target), tell)
        if limits is not None:
            limits.check(file.size, 1)
        async with staged(lambda: Here(target).file(file.mode), (target.name,), str(target)) as new:
            return await _copy(file, new, str(target), tell)


def _is_there(source: OpenFile, stamp: Stamp) -> Generator[bytes, None, bool]:
    return is_same(stamp, source.status, digest_of_open(source.descriptor))


def _is_here(source: OpenFile, target: Path, *, checksum: bool) -> Generator[bytes, None, bool]:
    try:
        status = target.lstat()
    except OSError:
        return False
    if not stat.S_ISREG(status.st_mode) or status.st_size != source.size:
        return False
    digest = (yield from digest_of_open(source.descriptor)) if checksum else b""
    return (yield from is_same(stamp_of(source.status)._replace(digest=digest), status, digest_of(None, str(target))))


async def _is_same(check: Callable[[], Generator[bytes, None, bool]], path: str) -> bool:
    """What ``check`` finds, which blocks in steps."""
    same = False

    def steps() -> Steps:
        nonlocal same
        same = yield from check()

    async with aclosing(in_slices(told_of(steps(), path))) as slices:
        async for _ in slices:
            pass
    return same


def _unchanged(path: str, tell: Report | None) -> Copied:
    if tell is not None:
        tell(CopyProgress(path="", done=0, total=0))
    return Copied(target=path, files=0, size=0, unchanged=1)


async def _copy(source: OpenFile, target: NewFile, path: str, tell: Report | None) -> Copied:
    """All of ``source`` with its time, and the commit. Errors name ``path``, where it is written."""
    copy = Copy(source, target.descriptor)

    def report() -> None:
        if tell is not None:
            tell(CopyProgress(path="", done=copy.done, total=max(copy.done, source.size)))

    async with aclosing(in_slices(told_of(copy.steps(), path))) as slices:
        async for _ in slices:
            report()
    report()
    await target.commit()
    return Copied(target=path, files=1, size=copy.done)


class Copy:
    """Copies what the source held when it was opened, and its time; ``done`` bytes are copied."""

    def __init__(self, source: OpenFile, target: int) -> None:
        self._source = source
        self._target = target
        self._reserved = 0
        self.done = 0

    def steps(self) -> Steps:
        """A piece a step. Raises `OSError`."""
        size = self._source.size
        for way in _WAYS:
            yield from self._go(way, size)
        if self.done < size:  # the source was cut shorter meanwhile
            os.ftruncate(self._target, self.done)
        os.utime(self._target, ns=(self._source.status.st_mtime_ns,) * 2)

    def _go(self, way: Callable[[int, int, int], int], size: int) -> Iterator[bytes]:
        """Until all is done, or there is no going on like this."""
        while self.done < size:
            self._reserve()
            try:
                count = way(self._source.descriptor, self._target, min(_PIECE, size - self.done))
            except OSError as error:
                if error.errno in _NOT_THIS_WAY and way is not _WAYS[-1]:
                    return
                raise
            if not count:
                return
            self.done += count
            yield b""

    def _reserve(self) -> None:
        """Space for what comes next, in one piece: half the time, where it can be had; where not, writing tells."""
        status = self._source.status
        if self.done < self._reserved or self._source.size <= _PIECE or status.st_blocks * 512 < status.st_size:
            return  # a source with holes may be larger than what is free
        _allocate(self._target, self.done, min(_RESERVE, self._source.size - self.done))
        self._reserved = self.done + _RESERVE


def _by_range(source: int, target: int, count: int) -> int:
    return os.copy_file_range(source, target, count)


def _by_sendfile(source: int, target: int, count: int) -> int:
    return os.sendfile(target, source, None, count)


def _by_reading(source: int, target: int, count: int) -> int:
    data = os.read(source, min(count, _READ))
    write_all(target, data)
    return len(data)


_KERNEL = (_by_range, _by_sendfile) if sys.platform == "linux" else ()
_WAYS: tuple[Callable[[int, int, int], int], ...] = (*_KERNEL, _by_reading)
"""The first that works is taken. All begin where the one before ended: they move the descriptors' positions."""


def _allocate(descriptor: int, offset: int, size: int) -> None:
    """Not `os.posix_fallocate`, which writes zeros on file systems that cannot do it."""
    fallocate = getattr(ctypes.CDLL(None), "fallocate", None)
    if fallocate is not None and sys.maxsize > 2**32:
        fallocate(descriptor, 0, ctypes.c_int64(offset), ctypes.c_int64(size))
