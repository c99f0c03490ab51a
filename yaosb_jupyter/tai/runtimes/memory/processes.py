"""The processes of a memory environment: found by a mark in their environment, and as descendants of those."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from yaosb_jupyter.errors import UnavailableError
from yaosb_jupyter.tai.threads import in_thread

_PROC = Path("/proc")
_KILL_SECONDS = 5.0
_START_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Process:
    """One process, told apart from a later one of the same pid by ``started`` (ticks since boot)."""

    pid: int
    parent: int
    started: int
    ticks: int
    threads: int
    resident_pages: int

    def command_line(self) -> str:
        """Its arguments joined by spaces; empty when it is gone."""
        return _read(self.pid, "cmdline").rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace")

    def send(self, signum: int) -> None:
        """Signals it, unless it is gone."""
        pidfd = self.open()
        if pidfd is None:
            return
        try:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signum)
        finally:
            os.close(pidfd)

    def open(self) -> int | None:
        """A pidfd of it; None when it is gone."""
        try:
            pidfd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return None
        same = lookup(self.pid)
        if same is not None and same.started == self.started:
            return pidfd
        os.close(pidfd)
        return None


def find(mark: bytes) -> Sequence[Process]:
    """The living processes that carry the mark, and their descendants. Blocks for some milliseconds."""
    processes = {process.pid: process for process in _all()}
    marked = {pid for pid in processes if mark in _read(pid, "environ").split(b"\0")}
    grown = True
    while grown:
        below = {pid for pid, process in processes.items() if process.parent in marked} - marked
        marked |= below
        grown = bool(below)
    return [processes[pid] for pid in sorted(marked)]


def await_marks(pid: int) -> None:
    """Returns when a process just started can be found by its marks: for some microseconds it has no environment."""
    deadline = time.monotonic() + _START_SECONDS
    while not _read(pid, "environ") and lookup(pid) is not None and time.monotonic() < deadline:
        os.sched_yield()


def send_all(processes: Iterable[Process], signum: int) -> None:
    for process in processes:
        process.send(signum)


def kill_all(mark: bytes) -> None:
    """Kills all that carry the mark, also those that are being born; returns when they are gone. Blocks."""
    deadline = time.monotonic() + _KILL_SECONDS
    while found := find(mark):
        if time.monotonic() > deadline:
            raise UnavailableError(f"{len(found)} processes cannot be killed", hint="the host's system log may say why")
        send_all(found, signal.SIGSTOP)  # a stopped process has no more children
        send_all(found, signal.SIGKILL)


async def terminate_all(mark: bytes, grace: float) -> None:
    """Ends all that carry the mark: SIGTERM, and SIGKILL for what is there ``grace`` seconds later."""
    found = await asyncio.to_thread(find, mark)
    if not found:
        return
    await asyncio.to_thread(send_all, found, signal.SIGTERM)
    await gone(found, grace)
    await asyncio.to_thread(kill_all, mark)


async def gone(processes: Iterable[Process], timeout: float) -> bool:
    """Whether all of them ended within ``timeout`` seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            for process in processes:
                await _ended(process)
            return True
    return False


async def _ended(process: Process) -> None:
    opened: list[int | None] = []
    loop = asyncio.get_running_loop()
    try:
        await in_thread(lambda: opened.append(process.open()))
        if (pidfd := opened[0]) is None:
            return
        ended = asyncio.Event()
        loop.add_reader(pidfd, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(pidfd)
    finally:
        for fd in opened:
            if fd is not None:
                os.close(fd)


def _all() -> Iterable[Process]:
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (process := lookup(int(entry.name))):
            yield process


def lookup(pid: int) -> Process | None:
    """The process of this pid; None for one that ended, also while its parent has not taken notice."""
    status = _read(pid, "stat")
    if not status:
        return None
    fields = status[status.rindex(b")") + 2 :].split()  # the name before may hold anything
    if fields[0] in (b"Z", b"X"):
        return None
    return Process(
        pid=pid,
        parent=int(fields[1]),
        started=int(fields[19]),
        ticks=int(fields[11]) + int(fields[12]),
        threads=int(fields[17]),
        resident_pages=int(fields[21]),
    )


def _read(pid: int, name: str) -> bytes:
    try:
        return (_PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""  # gone, or another user's
