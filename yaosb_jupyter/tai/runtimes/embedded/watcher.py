"""The limit on memory where no control group holds it: looked after from outside, twice a second."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from yaosb_jupyter.guest import processes
from yaosb_jupyter.tai.runtimes.embedded.inhabitants import Inhabitants
from yaosb_jupyter.tai.threads import in_thread

INTERVAL = 0.5


async def keep_memory_below(limit: int, inhabitants: Inhabitants) -> None:
    """Ends the largest process whenever all together have more than ``limit`` bytes of their own. Never returns."""
    while True:
        await asyncio.sleep(INTERVAL)
        await in_thread(_end_largest, limit, inhabitants)


def _end_largest(limit: int, inhabitants: Inhabitants) -> None:
    sizes = {pid: _own_memory(pid) for pid in inhabitants.pids() if pid != inhabitants.guest.name.pid}
    if sum(sizes.values()) > limit:
        processes.send_signal([max(sizes, key=lambda pid: sizes[pid])], signal.SIGKILL)


def _own_memory(pid: int) -> int:
    """Bytes resident that are not shared with a file or another process."""
    try:
        _, resident, shared, *_ = map(int, Path(f"/proc/{pid}/statm").read_bytes().split())
    except OSError:
        return 0  # gone meanwhile
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
