"""Opening a path that never leaves a directory, whoever plants links or swaps directories meanwhile.

The kernel's ``openat2`` answers where it can. Where it cannot (an old kernel, macOS, an absolute link that points
inside as the sandbox sees it), the path is walked one name at a time, each opened in the descriptor of the directory
before it and never through a link; links are read and walked as text.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections import deque
from typing import List, Optional, Sequence, Union

from . import libc

DIRECTORY = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
"""Flags for a directory that only serves to reach what is in it."""

MAX_LINKS = 40
_MAX_DEPTH = 256

_SYS_OPENAT2 = 437  # the same on every architecture
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08
_WALK_INSTEAD = {errno.EXDEV, errno.EAGAIN, errno.ENOSYS, errno.EPERM, errno.E2BIG}


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(root: int, names: Sequence[str], flags: int, mounts: Sequence[str] = ()) -> int:
    """A descriptor of the file that ``names`` lead to from the directory ``root``, links followed.

    ``mounts`` are absolute paths under which ``root`` is known inside: absolute links to them are followed too.
    Raises `OSError`; ``EXDEV`` where the path leaves ``root``.
    """
    try:
        return openat2_beneath(root, names, flags)
    except OSError as error:
        if error.errno not in _WALK_INSTEAD:
            raise
    return walk_beneath(root, names, flags, mounts)


def openat2_beneath(root: int, names: Sequence[str], flags: int) -> int:
    """`open_beneath` by the kernel; ``ENOSYS`` where it has no ``openat2``."""
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    how = _OpenHow(flags | os.O_CLOEXEC, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    path = os.fsencode("/".join(names) or ".")
    return libc.syscall(_SYS_OPENAT2, root, path, ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how)))


def walk_beneath(root: int, names: Sequence[str], flags: int, mounts: Sequence[str] = ()) -> int:
    """`open_beneath` by a walk of descriptors."""
    pending = deque(_meaningful(names))
    above = [os.dup(root)]
    links = 0
    try:
        while pending:
            name = pending.popleft()
            if name == "..":
                _go_up(above)
                continue
            opened = _step(above[-1], name, DIRECTORY if pending else flags)
            if isinstance(opened, str):
                links += 1
                if links > MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
                if opened.startswith("/"):
                    opened = inside(opened, mounts)
                    _close_all(above[1:])
                    del above[1:]
                pending.extendleft(reversed(_meaningful(opened.split("/"))))
                continue
            if not pending:
                return opened
            above.append(opened)
            if len(above) > _MAX_DEPTH:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), name)
        return os.open(".", flags | os.O_CLOEXEC, dir_fd=above[-1])
    finally:
        _close_all(above)


def _meaningful(names: Sequence[str]) -> List[str]:
    return [name for name in names if name not in ("", ".")]


def _go_up(above: List[int]) -> None:
    """To the directory we came from: ``..`` of the file system may be elsewhere by now."""
    if len(above) == 1:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), "..")
    os.close(above.pop())


def _step(directory: int, name: str, flags: int) -> Union[int, str]:
    """A descriptor of one name in a directory, or the target where the name is a link."""
    try:
        fd = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        target = read_link(directory, name)
        if target is None:
            raise
        return target
    if not stat.S_ISLNK(os.fstat(fd).st_mode):  # O_PATH opens a link itself
        return fd
    os.close(fd)
    target = read_link(directory, name)
    if target is None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), name)
    return target


def read_link(directory: int, name: str) -> Optional[str]:
    """The target of a link in a directory; None for anything else, and for nothing."""
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return None
        raise


def inside(target: str, mounts: Sequence[str]) -> str:
    """The rest of an absolute path below one of the mounts."""
    for mount in mounts:
        if target == mount or target.startswith(mount + "/"):
            return target[len(mount) + 1 :]
    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), target)


def _close_all(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)
