"""A file that is seen under its name only when it is whole."""

from __future__ import annotations

import errno
import os
import stat
from typing import Optional

from .frames import Buffer

NEW_FILE_MODE = 0o644
_WRITE = os.O_WRONLY | os.O_CLOEXEC
# It gets its name by way of /proc.
_UNNAMED = _WRITE | (getattr(os, "O_TMPFILE", 0) if os.path.isdir("/proc/self/fd") else 0)
_NAMED = _WRITE | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class StagedFile:
    """A new file in the directory ``directory``, a descriptor that this object takes over, to be called ``name``.

    Where nothing is to be replaced it has no name until then, if the file system can do that: one change of the
    directory in place of two, and nothing to clean up after a crash. Else it has a temporary one.
    """

    def __init__(self, directory: int, name: str, mode: int) -> None:
        self._directory = directory
        self.name = name
        self._temporary = ""
        self.fd = -1
        try:
            self.fd = self._create(mode)
            status = os.fstat(self.fd)
            self.inode = status.st_ino
            if stat.S_IMODE(status.st_mode) != mode:  # our umask, or a default of the directory's
                os.fchmod(self.fd, mode)
        except BaseException:
            self.discard()
            raise

    def write(self, data: Buffer) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.fd, rest) :]

    def commit(self) -> os.stat_result:
        """Takes the name; the file is whole from the first moment it is seen there."""
        if not self._temporary:
            try:
                self._link(self.name)
            except FileExistsError:  # since we looked
                self._temporary = _temporary_name()
                self._link(self._temporary)
        if self._temporary:
            os.rename(self._temporary, self.name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
            self._temporary = ""
        status = os.fstat(self.fd)
        self.discard()
        return status

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
            os.close(self._directory)
            self.fd = self._directory = -1

    def _create(self, mode: int) -> int:
        if _UNNAMED != _WRITE and _is_free(self._directory, self.name):
            try:
                return os.open(".", _UNNAMED, mode, dir_fd=self._directory)
            except OSError as error:
                # Which of these, a file system that cannot do it chooses.
                if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
                    raise
        self._temporary = _temporary_name()
        try:
            return os.open(self._temporary, _NAMED, mode, dir_fd=self._directory)
        except BaseException:
            self._temporary = ""
            raise

    def _link(self, name: str) -> None:
        os.link("/proc/self/fd/%d" % self.fd, name, dst_dir_fd=self._directory, follow_symlinks=True)


def _temporary_name() -> str:
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
