"""Walking a directory tree that others may be changing, by descriptors."""

from __future__ import annotations

import errno
import os
import stat
from typing import Iterator, List, NamedTuple, Optional, Tuple

from .confined import READ_DIRECTORY
from .records import MAX_DEPTH

_CHANGED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class TreeError(OSError):
    """What went wrong with one file of a tree; ``filename`` is its path from the top."""

    @classmethod
    def of(cls, error: OSError, path: str) -> TreeError:
        return cls(error.errno, os.strerror(error.errno or 0), path)


class Place(NamedTuple):
    """A name in an open directory and its path from the top; after a directory's last name one without ``status``."""

    directory: int
    name: str
    path: str
    status: Optional[os.stat_result]


Level = Tuple[int, str, Iterator[str]]


def walk(top: int) -> Iterator[Place]:
    """What is in the directory ``top`` and below it, by name, directories before what is in them, links not followed.

    What is gone or changed by the time it is looked at is left out. Raises `TreeError`.
    """
    levels: List[Level] = [(top, "", iter(sorted(os.listdir(top))))]
    try:
        while levels:
            directory, above, names = levels[-1]
            name = next(names, None)
            if name is None:
                yield Place(directory, "", above, None)
                levels.pop()
                if levels:
                    os.close(directory)
                continue
            path = "%s/%s" % (above, name) if above else name
            try:
                status = os.lstat(name, dir_fd=directory)
                if stat.S_ISDIR(status.st_mode):
                    levels.append(_level(directory, name, path, len(levels)))
            except OSError as error:
                if error.errno in _CHANGED:
                    continue
                raise TreeError.of(error, path) from error
            yield Place(directory, name, path, status)
    finally:
        for opened, _, _ in levels[1:]:
            os.close(opened)


def _level(directory: int, name: str, path: str, depth: int) -> Level:
    if depth >= MAX_DEPTH:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    fd = os.open(name, READ_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    try:
        return fd, path, iter(sorted(os.listdir(fd)))
    except BaseException:
        os.close(fd)
        raise
