"""The system calls that Python does not offer."""

from __future__ import annotations

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)

PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38


def prctl(option: int, argument: int = 0, pointer: object = None) -> None:
    """Raises `OSError`."""
    if _libc.prctl(option, ctypes.c_ulong(argument), pointer, 0, 0) != 0:
        raise _error("prctl(%d)" % option)


def syscall(number: int, *arguments: object) -> int:
    """Raises `OSError`."""
    result = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        raise _error("syscall(%d)" % number)
    return result


def trim() -> None:
    """Gives back what is free, where the C library can."""
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)


def inotify_init() -> int:
    """Raises `OSError`."""
    fd = int(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    if fd < 0:
        raise _error("inotify_init1")
    return fd


def inotify_add_watch(fd: int, path: bytes, mask: int) -> None:
    """Raises `OSError`."""
    if _libc.inotify_add_watch(fd, path, ctypes.c_uint32(mask)) < 0:
        raise _error("inotify_add_watch")


def _error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, "%s: %s" % (what, os.strerror(number)))
