"""Walking a directory tree that others may be changing, by descriptors."""

from __future__ import annotations

import errno
import os
from typing import Iterator, List, NamedTuple, Optional, Tuple

from . import records
from .confined import READ_DIRECTORY

_CHANGED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class TreeError(OSError):
    """What went wrong with one file of a tree; ``filename`` is its path from the top."""

    @classmethod
    def of(cls, error: OSError, path: str) -> TreeError:
        return cls(error.errno, os.strerror(error.errno or 0), path)


class Place(NamedTuple):
    """A name in an open directory and its path from the top.

    ``kind``: `records.ENTER` for a directory, FILE, SKIP for anything else, LEAVE after a directory's last name.
    ``status`` is there of directories, and of files where it was asked for.
    """

    directory: int
    name: str
    path: str
    kind: int
    status: Optional[os.stat_result]


Level = Tuple[int, str, Iterator["os.DirEntry[str]"]]


def walk(top: int, stats: bool) -> Iterator[Place]:
    """What is in the directory ``top`` and below it, by name, directories before what is in them, links not followed.

    What is gone or changed by the time it is looked at is left out. Raises `TreeError`.
    """
    levels: List[Level] = [(top, "", _entries(top))]
    try:
        while levels:
            directory, above, entries = levels[-1]
            entry = next(entries, None)
            if entry is None:
                yield Place(directory, "", above, records.LEAVE, None)
                levels.pop()
                if levels:
                    os.close(directory)
                continue
            name = entry.name
            path = "%s/%s" % (above, name) if above else name
            kind, status = records.SKIP, None
            try:
                if entry.is_file(follow_symlinks=False):
                    kind, status = records.FILE, entry.stat(follow_symlinks=False) if stats else None
                elif entry.is_dir(follow_symlinks=False):
                    levels.append(_level(directory, name, path, len(levels)))
                    kind, status = records.ENTER, os.fstat(levels[-1][0])
            except OSError as error:
                if error.errno in _CHANGED:
                    continue
                raise TreeError.of(error, path) from error
            yield Place(directory, name, path, kind, status)
    finally:
        for opened, _, _ in levels[1:]:
            os.close(opened)


def _level(directory: int, name: str, path: str, depth: int) -> Level:
    if depth >= records.MAX_DEPTH:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    fd = os.open(name, READ_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    try:
        return fd, path, _entries(fd)
    except BaseException:
        os.close(fd)
        raise


def _entries(fd: int) -> Iterator[os.DirEntry[str]]:
    with os.scandir(fd) as found:
        return iter(sorted(found, key=lambda entry: entry.name))
