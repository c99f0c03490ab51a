"""The file operations of one directory, none of which leaves it; for the host's own directories and for the guest.

Each operation resolves its path anew from a descriptor of the directory, and works on descriptors from there: what
is checked is what is used. Paths are sequences of names. All block; all raise `OSError`.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from typing import Iterator, NamedTuple, Optional, Sequence, Tuple

from .beneath import DIRECTORY, MAX_LINKS, inside, open_beneath, read_link
from .removal import removal
from .staging import NEW_FILE_MODE, StagedDirectory, StagedFile, mode_of_replaced

READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
READ_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
NEW_DIRECTORY_MODE = 0o755

Names = Sequence[str]


class Entry(NamedTuple):
    """What is told of a file: ``mtime`` seconds since 1970, ``target`` of a link."""

    name: str
    size: int
    mode: int
    mtime: float
    target: Optional[str]


class ConfinedDirectory:
    """One directory.

    ``mounts``: absolute paths under which it is known inside, where absolute links may lead. ``owner`` (uid, gid) of
    what is made in it, where we may say so; None: the directory's own owner.
    """

    def __init__(self, directory: str, mounts: Sequence[str], owner: Optional[Tuple[int, int]] = None) -> None:
        self._directory = directory
        self._mounts = mounts
        self._owner = owner

    def open_file(self, names: Names) -> Tuple[int, int]:
        """A descriptor to read a regular file with, and its size."""
        with self._root() as root:
            return _regular(self._open_readable(root, names))

    def open_tree(self, names: Names) -> int:
        """A descriptor to read a regular file or a directory with."""
        with self._root() as root:
            return self._open_readable(root, names)

    def open_directory(self, names: Names) -> int:
        with self._root() as root:
            return open_beneath(root, names, READ_DIRECTORY, self._mounts)

    def stage(self, names: Names, mode: Optional[int]) -> StagedFile:
        """A new file beside ``names``, whose directories are made, to take its place by `StagedFile.commit`."""
        with self._root() as root:
            with self._place(root, names, follow=True, parents=True) as (directory, name):
                kept = mode_of_replaced(directory, name)
                staged = StagedFile(os.dup(directory), name, _first(mode, kept, NEW_FILE_MODE) & 0o777)
            try:
                self.give(staged.fd, staged.status)
            except BaseException:
                staged.discard()
                raise
            return staged

    def stage_directory(self, names: Names, mode: int) -> StagedDirectory:
        """A new directory to be called ``names``, what is above it made, until `StagedDirectory.commit`."""
        with self._root() as root, self._place(root, names, follow=True, parents=True) as (directory, name):
            return StagedDirectory(os.dup(directory), name, mode)

    def stat(self, names: Names, follow: bool = False) -> Entry:
        """Of the file itself, or with ``follow`` of what a link leads to."""
        with self._root() as root:
            if not names:
                return entry_of("", os.fstat(root), None)
            with self._place(root, names) as (directory, name):
                entry = look(directory, name)
            if not follow or entry.target is None:
                return entry
            fd = open_beneath(root, names, getattr(os, "O_PATH", READ), self._mounts)
            try:
                return entry_of(entry.name, os.fstat(fd), None)
            finally:
                os.close(fd)

    def list(self, names: Names) -> Iterator[Entry]:
        """A directory's entries, in no order."""
        fd = self.open_directory(names)
        try:
            with os.scandir(fd) as found:
                for item in found:
                    entry = look_again(fd, item.name)
                    if entry is not None:
                        yield entry
        finally:
            os.close(fd)

    def make_directory(self, names: Names) -> int:
        """A descriptor of a directory, made step by step where it is missing."""
        with self._root() as root:
            return self._make(root, names)

    def remove(self, names: Names, recursive: bool) -> Iterator[None]:
        """Removes a file, a link or a directory, a step at a time."""
        with self._root() as root, self._place(root, names) as (directory, name):
            if not stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode):
                os.unlink(name, dir_fd=directory)
            elif recursive:
                yield from removal(directory, name)
            else:
                os.rmdir(name, dir_fd=directory)

    def rename(self, source: Names, target: Names) -> None:
        """Moves within the directory."""
        with self._root() as root, self._place(root, source) as (old_directory, old_name):
            os.lstat(old_name, dir_fd=old_directory)
            with self._place(root, target) as (new_directory, new_name):
                os.rename(old_name, new_name, src_dir_fd=old_directory, dst_dir_fd=new_directory)

    def give(self, fd: int, status: os.stat_result) -> None:
        """Gives what we made to the sandbox's user. Only root can; else it is ours, and so is the sandbox's user."""
        if os.geteuid() == 0:
            if self._owner is None:
                found = os.stat(self._directory)
                self._owner = (found.st_uid, found.st_gid)
            if (status.st_uid, status.st_gid) != self._owner:
                os.fchown(fd, *self._owner)

    @contextmanager
    def _root(self) -> Iterator[int]:
        fd = os.open(self._directory, DIRECTORY)
        try:
            yield fd
        finally:
            os.close(fd)

    def _open_readable(self, root: int, names: Names) -> int:
        if not hasattr(os, "O_PATH"):
            return file_or_directory(open_beneath(root, names, READ, self._mounts))
        found = file_or_directory(open_beneath(root, names, os.O_PATH, self._mounts))
        try:  # opened for reading only now: opening a FIFO or a device can have effects
            return file_or_directory(os.open("/proc/self/fd/%d" % found, READ))
        finally:
            os.close(found)

    @contextmanager
    def _place(
        self, root: int, names: Names, *, follow: bool = False, parents: bool = False
    ) -> Iterator[Tuple[int, str]]:
        """The directory that ``names`` lead to, and the last name in it; ``follow`` a link there to where it points."""
        for _ in range(MAX_LINKS):
            if not names or names[-1] in ("", ".", ".."):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            above, name = tuple(names[:-1]), names[-1]
            directory = self._make(root, above) if parents else open_beneath(root, above, DIRECTORY, self._mounts)
            try:
                target = read_link(directory, name) if follow else None
                if target is None:
                    yield directory, name
                    return
            finally:
                os.close(directory)
            names = self._link_names(above, target)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def _link_names(self, above: Tuple[str, ...], target: str) -> Tuple[str, ...]:
        """Where a link leads, ``..`` kept: it counts from the real directory."""
        if target.startswith("/"):
            return tuple(inside(target, self._mounts).split("/"))
        return (*above, *target.rstrip("/").split("/"))

    def _make(self, root: int, names: Names) -> int:
        try:
            return open_beneath(root, names, DIRECTORY, self._mounts)
        except FileNotFoundError:
            if not names:
                raise
        directory = self._make(root, names[:-1])
        try:
            self._make_one(directory, names[-1], NEW_DIRECTORY_MODE)
            return os.open(names[-1], DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
        finally:
            os.close(directory)

    def _make_one(self, directory: int, name: str, mode: int) -> None:
        """Makes one directory in another; no-op where there is something of that name."""
        try:
            os.mkdir(name, 0o700, dir_fd=directory)
        except FileExistsError:
            return  # made by another meanwhile, or a link to nowhere, which the next open refuses
        fd = os.open(name, READ_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
        try:
            os.fchmod(fd, mode)  # whatever our umask
            self.give(fd, os.fstat(fd))
        finally:
            os.close(fd)


def look(directory: int, name: str) -> Entry:
    """What is told of a name in a directory. Raises `OSError`."""
    status = os.lstat(name, dir_fd=directory)
    return entry_of(name, status, read_link(directory, name) if stat.S_ISLNK(status.st_mode) else None)


def look_again(directory: int, name: str) -> Optional[Entry]:
    """At a name that was read from the directory; None where it is gone."""
    try:
        return look(directory, name)
    except FileNotFoundError:
        return None


def entry_of(name: str, status: os.stat_result, target: Optional[str]) -> Entry:
    return Entry(name, status.st_size, status.st_mode, status.st_mtime, target)


def file_or_directory(fd: int) -> int:
    """The descriptor, if it is one of those; else it is closed. Raises `OSError`."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return fd
    os.close(fd)
    raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))


def _regular(fd: int) -> Tuple[int, int]:
    """The descriptor and the size, if it is a file's."""
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode):
        return fd, status.st_size
    os.close(fd)
    raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))


def _first(*values: Optional[int]) -> int:
    return next(value for value in values if value is not None)
