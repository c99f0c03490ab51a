"""A process held so that its number can never be mistaken for another's."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path

from yaosb_jupyter.guest.processes import DEAD, read_process


@dataclass(frozen=True, kw_only=True)
class ProcessName:
    """What names a process for good: its number, when it was started (ticks since boot), and in which boot."""

    pid: int
    started: int
    boot: str


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class ProcessHandle:
    """A living process. Signals go to it and to none that took its number later."""

    def __init__(self, name: ProcessName, fd: int) -> None:
        self.name = name
        self._fd = fd
        self._lock = threading.Lock()  # a number that was closed may be another's by the time it is used

    @classmethod
    def of(cls, pid: int) -> ProcessHandle | None:
        """Of a process that runs now; None where there is none. Blocks for a moment."""
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            return None
        process = read_process(pid)
        if process is None or process.state in DEAD:
            os.close(fd)
            return None
        return cls(ProcessName(pid=pid, started=process.started, boot=boot_id()), fd)

    @classmethod
    def find(cls, name: ProcessName) -> ProcessHandle | None:
        """The process of that name if it still lives. Blocks for a moment."""
        handle = cls.of(name.pid)
        if handle is not None and handle.name != name:
            handle.close()
            return None
        return handle

    def signal(self, signum: int) -> None:
        """Nothing happens after its end."""
        with self._lock, contextlib.suppress(ProcessLookupError):
            if self._fd >= 0:
                signal.pidfd_send_signal(self._fd, signum)

    async def ended(self) -> None:
        """Returns when it has ended: at once where it already has."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def tell() -> None:
            if not done.done():
                done.set_result(None)

        fd = os.dup(self._fd)  # its own number: several may wait, and the loop knows one reader of each
        loop.add_reader(fd, tell)
        try:
            await done
        finally:
            loop.remove_reader(fd)
            os.close(fd)

    def close(self) -> None:
        """Lets go of the process, which goes on."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
