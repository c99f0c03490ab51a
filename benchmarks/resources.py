"""What a sandbox costs while nothing runs in it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import NotBuiltError, Row, Target
from benchmarks.report import mebibytes, percent
from benchmarks.stage import Stage

OURS = "yaosb in process"
NAMES = (OURS, "code-sandboxes")
KEEPERS = frozenset({"docker-init", "tini"})


def rows(stage: Stage) -> Sequence[Row]:
    return [
        Row(
            key="guest-memory",
            title="resident memory inside, idle",
            show=mebibytes,
            contestants=stage.contestants(NAMES, lambda adapter: float(sum(map(_resident, _processes(adapter))))),
            targets=[Target(subject=OURS, at_most=14 * 2**20)],
            rounds=3,
            warm_up=False,
        ),
        Row(
            key="idle-cpu",
            title="CPU inside, idle, share of a core",
            show=percent,
            contestants=stage.contestants(NAMES, lambda adapter: _idle(adapter, stage.scale.watch)),
            targets=[Target(subject=OURS, at_most=0.001)],
            seconds=0,
            rounds=2,
            limit=120,
            warm_up=False,
        ),
    ]


def _processes(adapter: Any) -> Sequence[int]:
    """The host's pids of what runs in a container, its init apart."""
    from docker import from_env

    if getattr(adapter, "link", "") == "engine":
        raise NotBuiltError("the guest in a container")
    client = from_env()
    try:
        listed = client.containers.get(adapter.container).top(ps_args="-eo pid,comm")["Processes"]
    finally:
        client.close()
    return [int(pid) for pid, name in listed if name not in KEEPERS]


def _resident(pid: int) -> int:
    found = re.search(r"^VmRSS:\s*(\d+) kB$", Path(f"/proc/{pid}/status").read_text(encoding="utf-8"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def _idle(adapter: Any, seconds: float) -> float:
    """Not by the clock ticks of ``stat``: one of them is a tenth of what may be used."""
    before, started = sum(_used(_processes(adapter))), time.perf_counter()
    time.sleep(seconds)  # this is what is measured
    elapsed = time.perf_counter() - started
    return (sum(_used(_processes(adapter))) - before) / 1e9 / elapsed


def _used(pids: Iterable[int]) -> Iterable[int]:
    """Nanoseconds on a CPU, of every thread."""
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            yield int((thread / "schedstat").read_text(encoding="ascii").split()[0])
