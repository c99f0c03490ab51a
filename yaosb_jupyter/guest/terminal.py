"""Terminals of commands."""

from __future__ import annotations

import fcntl
import os
import struct
import termios

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Tuple

END_OF_FILE = b"\x04"
"""What a person types for it."""
NAME = "xterm-256color"


def open_terminal(columns: int, rows: int) -> Tuple[int, int]:
    """Our end, and the command's. Raises `OSError`."""
    ours, theirs = os.openpty()
    resize(ours, columns, rows)
    return ours, theirs


def resize(fd: int, columns: int, rows: int) -> None:
    """The foreground process is told by SIGWINCH. Raises `OSError`."""
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", _within(rows), _within(columns), 0, 0))


def take_as_controlling() -> None:
    """Makes stdin the controlling terminal of this process, which leads a session."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _within(number: int) -> int:
    return min(max(number, 1), 65535)
