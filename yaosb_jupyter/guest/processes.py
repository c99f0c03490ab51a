"""Processes as /proc tells them, and how to end them so that none gets away."""

from __future__ import annotations

import contextlib
import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Iterable, Optional, Sequence, Set, TypeAlias

DEAD = frozenset("ZXx")


class Process:
    """``started`` ticks since boot, which with the pid name it for good; ``ticks`` of CPU used; ``pages`` resident."""

    __slots__ = ("pages", "parent", "pid", "session", "started", "state", "threads", "ticks")

    def __init__(self, pid: int, fields: Sequence[bytes]) -> None:
        """``fields`` of /proc/PID/stat that follow the name."""
        self.pid = pid
        self.state = fields[0].decode()
        self.parent = int(fields[1])
        self.session = int(fields[3])
        self.ticks = int(fields[11]) + int(fields[12])
        self.threads = int(fields[17])
        self.started = int(fields[19])
        self.pages = int(fields[21])


Table: TypeAlias = "Dict[int, Process]"


def read_process(pid: int) -> Process | None:
    """None where there is no such process."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            line = file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    # The name stands in parentheses and may hold any character.
    return Process(pid, line[line.rindex(b")") + 2 :].split())


def scan() -> Table:
    """All processes that can be seen."""
    found = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {process.pid: process for process in found if process is not None}


def descendants(root: int, table: Table) -> Set[int]:
    """The pids below ``root``, without it."""
    children: Dict[int, list[int]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: Set[int] = set()
    todo = list(children.get(root, ()))
    while todo:
        pid = todo.pop()
        if pid not in found:
            found.add(pid)
            todo.extend(children.get(pid, ()))
    return found


def alive(pids: Iterable[int], table: Table) -> Set[int]:
    return {pid for pid in pids if pid in table and table[pid].state not in DEAD}


def inhabitants() -> Set[int]:
    """The living processes of the sandbox but this one: all others where it is pid 1, else its descendants."""
    me = os.getpid()
    table = scan()
    return alive((pid for pid in table if pid != me) if me == 1 else descendants(me, table), table)


def command_line(pid: int) -> str:
    """Arguments joined by spaces; empty for kernel threads, zombies and what is gone."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            raw = file.read()
    except OSError:
        return ""
    return raw.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")


def has_variable(pid: int, name: bytes, value: Optional[bytes] = None) -> bool:
    """Whether the process was started with that variable, of that value if one is given."""
    wanted = name + b"=" if value is None else b"%b=%b\0" % (name, value)
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:
            return b"\0" + wanted in b"\0" + file.read()
    except OSError:
        return False


def send_signal(pids: Iterable[int], signum: int) -> None:
    """Parents first, so that none sees its child's end and goes on to an end of its own."""
    for pid in sorted(pids):
        # What is gone, or not ours, is passed over.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signum)


def kill_all(find: Callable[[], Set[int]], patience: float = 2.0) -> bool:
    """Ends what ``find`` finds; True when it finds no more.

    A process that forks faster than we look is stopped first: nothing new comes from what is stopped, so each round
    finds less, and the kill meets a set that does not change.
    """
    deadline = time.monotonic() + patience
    while True:
        stopped: Set[int] = set()
        while True:
            fresh = find() - stopped
            if not fresh or time.monotonic() > deadline:
                break
            send_signal(fresh, signal.SIGSTOP)
            stopped |= fresh
        if not stopped:
            return True
        send_signal(stopped, signal.SIGKILL)
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)  # the kernel needs a moment to bury them
