"""A file that is seen under its name only when it is whole."""

from __future__ import annotations

import errno
import os
import stat
from typing import Optional

from .frames import Buffer
from .removal import open_directory, remove_tree

NEW_FILE_MODE = 0o644
_WRITE = os.O_WRONLY | os.O_CLOEXEC
# It gets its name by way of /proc.
_UNNAMED = _WRITE | (getattr(os, "O_TMPFILE", 0) if os.path.isdir("/proc/self/fd") else 0)
_NAMED = _WRITE | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class StagedFile:
    """A new file in the directory ``directory``, a descriptor that this object takes over if ``owned``, to be ``name``.

    Where nothing is to be replaced it has no name until then, if the file system can do that: one change of the
    directory in place of two, and nothing to clean up after a crash. Else it has a temporary one. In a ``fresh``
    directory, which nobody looks for yet, it has its own from the start. Raises `OSError`.
    """

    def __init__(self, directory: int, name: str, mode: int, *, owned: bool = True, fresh: bool = False) -> None:
        self._directory = directory
        self.name = name
        self._owned = owned
        self._fresh = fresh
        self._temporary = ""
        self.fd = -1
        try:
            self.fd = self._create(mode)
            self.status = os.fstat(self.fd)
            if stat.S_IMODE(self.status.st_mode) != mode:  # our umask, or a default of the directory's
                os.fchmod(self.fd, mode)
        except BaseException:
            self.discard()
            raise

    def write(self, data: Buffer) -> None:
        write_all(self.fd, data)

    def commit(self) -> os.stat_result:
        """Takes the name; what is told of the file."""
        status = os.fstat(self.fd)
        self.take_name()
        return status

    def take_name(self) -> None:
        """The file is whole from the first moment it is seen there."""
        if not self._temporary:
            try:
                self._link(self.name)
            except FileExistsError:  # since we looked
                self._temporary = temporary_name()
                self._link(self._temporary)
        if self._temporary and not self._fresh:
            os.rename(self._temporary, self.name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        self._temporary = ""
        self.discard()

    def discard(self) -> None:
        """Lets go, removing what was not committed. Idempotent."""
        if self._directory < 0:
            return
        try:
            if self._temporary:
                os.unlink(self._temporary, dir_fd=self._directory)
        except FileNotFoundError:
            pass  # somebody removed it
        finally:
            if self.fd >= 0:
                os.close(self.fd)
            if self._owned:
                os.close(self._directory)
            self.fd = self._directory = -1

    def _create(self, mode: int) -> int:
        if not self._fresh and _UNNAMED != _WRITE and _is_free(self._directory, self.name):
            try:
                return os.open(".", _UNNAMED, mode, dir_fd=self._directory)
            except OSError as error:
                # Which of these, a file system that cannot do it chooses.
                if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
                    raise
        self._temporary = self.name if self._fresh else temporary_name()
        try:
            return os.open(self._temporary, _NAMED, mode, dir_fd=self._directory)
        except BaseException:
            self._temporary = ""
            raise

    def _link(self, name: str) -> None:
        os.link("/proc/self/fd/%d" % self.fd, name, dst_dir_fd=self._directory, follow_symlinks=True)


class StagedDirectory:
    """A new directory in the directory ``directory``, a descriptor that this object takes over, to be called ``name``.

    It has a temporary name while it is filled, by way of its own descriptor ``fd``; ``mode`` as our umask allows it.
    """

    def __init__(self, directory: int, name: str, mode: int) -> None:
        self._directory = directory
        self._name = name
        self._temporary = temporary_name()
        self.fd = -1
        try:
            os.mkdir(self._temporary, mode, dir_fd=directory)
            self.fd = open_directory(directory, self._temporary)
        except BaseException:
            self._let_go()
            raise

    def commit(self) -> None:
        """Takes the name; should there be a directory by then, what is in this one moves over. Raises `OSError`."""
        try:
            _move(self._directory, self._directory, self._temporary, self._name)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        """Nothing stays under the temporary name."""
        try:
            remove_tree(self._directory, self._temporary)
        except (FileNotFoundError, NotADirectoryError):
            pass  # it has its own, or somebody took it
        finally:
            if self.fd >= 0:
                os.close(self.fd)
            os.close(self._directory)


def _move(old: int, new: int, name: str, new_name: str) -> None:
    """A directory to another name; into the directory that is there."""
    try:
        os.rename(name, new_name, src_dir_fd=old, dst_dir_fd=new)
        return
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    source = open_directory(old, name)
    try:
        target = open_directory(new, new_name)
        try:
            for found in os.listdir(source):
                _move(source, target, found, found)
        finally:
            os.close(target)
    finally:
        os.close(source)


def write_all(fd: int, data: Buffer) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def temporary_name() -> str:
    return ".yaosb-%s.part" % os.urandom(8).hex()


def _is_free(directory: int, name: str) -> bool:
    try:
        os.lstat(name, dir_fd=directory)
    except FileNotFoundError:
        return True
    return False


def mode_of_replaced(directory: int, name: str) -> Optional[int]:
    """The permissions of the file that is to be replaced; None where there is none. Raises `OSError` for no file."""
    try:
        mode = os.lstat(name, dir_fd=directory).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(mode):
        return stat.S_IMODE(mode)
    code = errno.EISDIR if stat.S_ISDIR(mode) else errno.ENXIO
    raise OSError(code, os.strerror(code), name)
