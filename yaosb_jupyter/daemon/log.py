"""The daemon's log file, which also takes what libraries and the interpreter write to stdout and stderr."""

from __future__ import annotations

import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path

_SIZE = 4 * 2**20
_KEPT = 2
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _LogFile(RotatingFileHandler):
    """Moves the process's own outputs along when the file is rotated."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=_SIZE, backupCount=_KEPT, encoding="utf-8")
        self._point_outputs()

    def doRollover(self) -> None:  # noqa: N802
        super().doRollover()
        self._point_outputs()

    def _point_outputs(self) -> None:
        assert self.stream is not None
        for descriptor in (1, 2):
            os.dup2(self.stream.fileno(), descriptor)


def log_to_file(path: Path) -> None:
    """From here on everything this process says goes to ``path``."""
    _begin(_LogFile(path))
    path.chmod(0o600)


def log_to_stderr() -> None:
    _begin(logging.StreamHandler())


def _begin(handler: logging.Handler) -> None:
    logging.captureWarnings(True)
    handler.setFormatter(logging.Formatter(_FORMAT))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)


def last_lines(path: Path, count: int = 15) -> str:
    """The end of a log, ``""`` where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 8192))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-count:])
