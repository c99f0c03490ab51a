"""The main process of a memory environment. It outlives the event loop that started it: a thread listens to it."""

from __future__ import annotations

import os
import selectors
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from yaosb_jupyter.choices import ExecChannel

_KEPT_BYTES = 2**20
_PIECE = 2**20  # all that a pipe can hold


@dataclass(frozen=True, kw_only=True)
class Logged:
    """A piece of output, and when it arrived."""

    at: datetime
    channel: ExecChannel
    data: bytes


class Log:
    """The last MiB of a main process's output, over restarts. Thread-safe."""

    def __init__(self) -> None:
        self._pieces: list[Logged] = []
        self._dropped = 0
        self._size = 0
        self._lock = threading.Lock()

    def append(self, channel: ExecChannel, data: bytes) -> None:
        with self._lock:
            self._pieces.append(Logged(at=datetime.now(UTC), channel=channel, data=data))
            self._size += len(data)
            while self._size > _KEPT_BYTES and len(self._pieces) > 1:
                self._size -= len(self._pieces.pop(0).data)
                self._dropped += 1

    def since(self, position: int) -> tuple[Sequence[Logged], int]:
        """What came after a position (0 is the beginning), and the position after it."""
        with self._lock:
            return self._pieces[max(position - self._dropped, 0) :], self._dropped + len(self._pieces)


class MainProcess:
    """One run of it. ``on_exit`` is called with the exit code, in a thread."""

    def __init__(self, process: subprocess.Popen[bytes], *, log: Log, on_exit: Callable[[int], None]) -> None:
        self._process = process
        self._log = log
        self._on_exit = on_exit
        threading.Thread(target=self._listen, name="memory-main", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _listen(self) -> None:
        ended = os.pidfd_open(self._process.pid)
        with self._process as process, selectors.DefaultSelector() as selector:
            selector.register(ended, selectors.EVENT_READ)
            for channel, pipe in ((ExecChannel.STDOUT, process.stdout), (ExecChannel.STDERR, process.stderr)):
                assert pipe is not None
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe.fileno(), selectors.EVENT_READ, channel)
            while not any(self._take(selector, key) for key, _ in selector.select()):
                pass
            selector.unregister(ended)
            for key, _ in selector.select(0):  # its last words; a daemon of its is not waited for
                self._take(selector, key)
            code = process.wait()
        os.close(ended)
        self._on_exit(128 - code if code < 0 else code)

    def _take(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> bool:
        """Reads what there is; whether this was the process's end."""
        if key.data is None:
            return True
        if data := os.read(key.fd, _PIECE):
            self._log.append(key.data, data)
        else:
            selector.unregister(key.fd)
        return False


def last_lines(pieces: Sequence[Logged], count: int) -> Sequence[Logged]:
    """The pieces that hold the last ``count`` lines, the first cut to where they begin."""
    kept: list[Logged] = []
    wanted = count
    for piece in reversed(pieces):
        goes_on = bool(kept) and not piece.data.endswith(b"\n")  # its last line was counted in the piece after it
        if wanted <= 0 and not goes_on:
            break
        wanted += goes_on
        lines = piece.data.splitlines(keepends=True)
        taken = lines[-wanted:]
        wanted -= len(taken)
        kept.append(Logged(at=piece.at, channel=piece.channel, data=b"".join(taken)))
    return kept[::-1]
