"""Launchers in hand: a root daemon's sandboxes begin with a Python (see `launcher`), which is started beforehand."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from yaosb_jupyter.tai.runtimes.embedded import launcher

_PROGRAM = Path(launcher.__file__)


@dataclass(frozen=True, kw_only=True)
class Launcher:
    """One that waits for its order, and ends with this process. ``told``: where bubblewrap will say what it started."""

    child: subprocess.Popen[bytes]
    told: int

    @classmethod
    def start(cls) -> Launcher:
        """Raises `OSError`."""
        told, telling = os.pipe()
        try:
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_PROGRAM), str(telling)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                pass_fds=(telling,),
                start_new_session=True,
            )
        except BaseException:
            os.close(told)
            raise
        finally:
            os.close(telling)
        return cls(child=child, told=told)

    def order(self, argv: Sequence[str], *, user: tuple[int, int], stage: Sequence[str], log: Path) -> None:
        """To become ``argv``, whose program is the first of ``stage``, as ``user``; its outputs go to ``log``."""
        assert self.child.stdin is not None
        order = {"argv": argv, "user": user, "stage": stage, "log": str(log)}
        try:
            self.child.stdin.write(json.dumps(order).encode() + b"\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            pass  # it ended, which is seen where it should tell

    def end(self) -> None:
        os.close(self.told)
        self.child.kill()
        self.child.wait()
        assert self.child.stdin is not None
        self.child.stdin.close()


class Launchers:
    """One in hand at most. All calls block for a moment, and may come from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: Launcher | None = None

    def take(self) -> Launcher:
        """One that waits; the caller's from then on. Raises `OSError`."""
        with self._lock:
            found, self._waiting = self._waiting, None
        if found is not None and found.child.poll() is not None:  # somebody killed it
            found.end()
            found = None
        return found or Launcher.start()

    def refill(self) -> None:
        with self._lock, contextlib.suppress(OSError):  # `take` tells, if it cannot either
            self._waiting = self._waiting or Launcher.start()

    def close(self) -> None:
        """Ends the one in hand. `take` and `refill` work on."""
        with self._lock:
            found, self._waiting = self._waiting, None
        if found is not None:
            found.end()
