"""The pipe that a command writes to, read with nobody in between."""

from __future__ import annotations

import array
import fcntl
import io
import termios
import threading
from typing import Final

PIECE: Final = 1 << 17
"""So much is still in the processor's caches when it is used."""


class OutputPipe:
    """The reading end of a command's stdout: one that does not block, closed with this object at the latest.

    What is in it follows the first ``offset`` bytes of the command's output, which come by the stream. For one reader,
    in any thread.
    """

    def __init__(self, descriptor: int, offset: int) -> None:
        self._file = io.FileIO(descriptor)
        self._using = threading.Lock()
        self._left: int | None = None
        self.offset: Final = offset

    def fileno(self) -> int:
        """Raises `ValueError` when closed."""
        return self._file.fileno()

    @property
    def closed(self) -> bool:
        return self._file.closed

    def read(self) -> bytes | None:
        """What has been written, without waiting: None where nothing is there yet, ``b""`` at the end."""
        with self._using:
            if self._file.closed or self._left == 0:
                return b""
            if self._left is None:
                return self._file.read(PIECE)
            data = self._file.read(min(PIECE, self._left)) or b""
            self._left -= len(data)
            return data

    def leave_after_rest(self) -> None:
        """What is there now is the last, whoever else may still write."""
        with self._using:
            if self._left is None and not self._file.closed:
                held = array.array("i", [0])
                fcntl.ioctl(self._file, termios.FIONREAD, held)
                self._left = held[0]

    def close(self) -> None:
        """Idempotent."""
        with self._using:
            self._file.close()
