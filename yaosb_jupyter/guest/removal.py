"""Removing a directory tree that its owner may still be changing, however deep it is."""

from __future__ import annotations

import errno
import os
import stat
from typing import Iterator

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_PASSES = 100_000


def remove_tree(directory: int, name: str) -> None:
    """Removes the directory ``name`` in the directory ``directory`` with all it holds. Never follows a link.

    Raises `OSError`; ``EBUSY`` where others keep filling it.
    """
    for _ in removal(directory, name):
        pass


def removal(directory: int, name: str) -> Iterator[None]:
    """`remove_tree` in small steps.

    Full directories below are lifted to the top before they are emptied, so that two descriptors and no recursion do
    for any depth.
    """
    top = open_directory(directory, name)
    try:
        for _ in range(_MAX_PASSES):
            for entry in os.listdir(top):
                yield from _remove_entry(top, entry)
            if _remove_directory(directory, name):
                return
    finally:
        os.close(top)
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), name)


def _remove_entry(top: int, name: str) -> Iterator[None]:
    yield
    if _unlink(top, name):
        return
    try:
        below = open_directory(top, name)
    except (FileNotFoundError, NotADirectoryError):
        return  # changed meanwhile: the next pass sees it
    try:
        for entry in os.listdir(below):
            yield
            if not _unlink(below, entry) and not _remove_directory(below, entry):
                _lift(below, entry, top)
    finally:
        os.close(below)
    _remove_directory(top, name)


def _unlink(directory: int, name: str) -> bool:
    """Whether the name is gone; False for a directory."""
    try:
        os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        return True
    except (IsADirectoryError, PermissionError):  # which of both, the system chooses
        try:
            if stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode):
                return False
        except FileNotFoundError:
            return True
        raise
    return True


def _remove_directory(directory: int, name: str) -> bool:
    """Whether the directory is gone; False for one that is not empty."""
    try:
        os.rmdir(name, dir_fd=directory)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _lift(directory: int, name: str, top: int) -> None:
    try:
        os.close(open_directory(directory, name))  # to be moved, it must be writable
        os.rename(name, ".removed-" + os.urandom(8).hex(), src_dir_fd=directory, dst_dir_fd=top)
    except (FileNotFoundError, NotADirectoryError):
        pass  # changed meanwhile: the next pass sees it


def open_directory(directory: int, name: str) -> int:
    """A descriptor of a directory, made accessible where its owner (us) had shut himself out."""
    try:
        fd = os.open(name, _OPEN, dir_fd=directory)
    except PermissionError:
        if not hasattr(os, "O_PATH"):
            raise
        fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            os.chmod("/proc/self/fd/%d" % fd, 0o700)
        finally:
            os.close(fd)
        return os.open(name, _OPEN, dir_fd=directory)
    if os.geteuid() != 0 and os.fstat(fd).st_mode & 0o300 != 0o300:
        os.fchmod(fd, 0o700)
    return fd
