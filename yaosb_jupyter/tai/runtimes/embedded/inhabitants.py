"""The processes of one sandbox, as the host sees them, and their end. All calls block for a moment."""

from __future__ import annotations

import os
import signal
from collections.abc import Set
from dataclasses import dataclass

from yaosb_jupyter.guest import processes
from yaosb_jupyter.tai.runtimes.embedded.cgroups import Group, Usage
from yaosb_jupyter.tai.runtimes.embedded.handles import ProcessHandle


@dataclass(frozen=True, kw_only=True)
class Inhabitants:
    """``guest`` the first of them; ``contained``: the kernel ends all with it. ``user``: a uid that is theirs alone;
    ``mark``: a variable they were started with, and its value; ``group``: the control group they are in."""

    guest: ProcessHandle
    contained: bool
    user: int | None
    mark: tuple[str, str]
    group: Group | None

    def pids(self) -> Set[int]:
        """All that live, the guest too."""
        table = processes.scan()
        pid = self.guest.name.pid
        found = set()
        if pid in table and table[pid].started == self.guest.name.started:
            found = processes.descendants(pid, table) | {pid}
        if self.group is not None:
            found |= set(self.group.pids())
        if not self.contained:
            found |= {other for other in table if other not in found and self._is_marked(other)}
        return processes.alive(found, table)

    def kill(self) -> None:
        """Ends all at once. Nothing happens where none is left."""
        if self.contained:
            self.guest.signal(signal.SIGKILL)
            return
        # Stopped, the guest still adopts what loses its parent: the tree stays whole until it is empty.
        self.guest.signal(signal.SIGSTOP)
        processes.kill_all(lambda: set(self.pids()) - {self.guest.name.pid})
        self.guest.signal(signal.SIGKILL)
        processes.kill_all(lambda: set(self.pids()))

    def usage(self) -> Usage:
        if self.group is not None:
            return self.group.usage()
        table = processes.scan()
        living = [table[pid] for pid in self.pids() if pid in table]
        return Usage(
            memory=sum(process.pages for process in living) * os.sysconf("SC_PAGE_SIZE"),
            pids=sum(process.threads for process in living),
            cpu_time=sum(process.ticks for process in living) / os.sysconf("SC_CLK_TCK"),
            killed_for_memory=0,
        )

    def _is_marked(self, pid: int) -> bool:
        if self.user is not None:
            try:
                return os.stat(f"/proc/{pid}").st_uid == self.user  # noqa: PTH116
            except OSError:
                return False
        name, value = self.mark
        return processes.has_variable(pid, name.encode(), value.encode())
