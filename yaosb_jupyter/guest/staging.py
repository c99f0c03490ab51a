"""A file that is written under a name of its own, and seen under the one it is for only when it is whole."""

from __future__ import annotations

import errno
import os
import stat
from typing import Optional

from .frames import Buffer

NEW_FILE_MODE = 0o644


class StagedFile:
    """A new file in the directory ``directory``, a descriptor that this object takes over, to be called ``name``."""

    def __init__(self, directory: int, name: str) -> None:
        self._directory = directory
        self.name = name
        self._temporary = ".yaosb-%s.part" % os.urandom(8).hex()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self.fd = os.open(self._temporary, flags, 0o600, dir_fd=directory)
        except BaseException:
            os.close(directory)
            raise

    def write(self, data: Buffer) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.fd, rest) :]

    def commit(self) -> os.stat_result:
        """Takes the name; the file is whole from the first moment it is seen there."""
        os.rename(self._temporary, self.name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        self._temporary = ""
        status = os.fstat(self.fd)
        self.discard()
        return status

    def discard(self) -> None:
        """Lets go, removing what was not committed. Idempotent."""
        if self.fd < 0:
            return
        try:
            if self._temporary:
                os.unlink(self._temporary, dir_fd=self._directory)
        except FileNotFoundError:
            pass  # somebody removed it
        finally:
            os.close(self.fd)
            os.close(self._directory)
            self.fd = -1


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
