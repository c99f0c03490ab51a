"""Control groups, on directories that stand in for the kernel's, and on the kernel's where they can be made."""

from __future__ import annotations

import os
from pathlib import Path

from yaosb_jupyter.tai.runtimes.embedded.cgroups import SWEEP_AGE, Cgroups, Limits


def files(path: Path) -> dict[str, str]:
    return {item.name: item.read_text() for item in path.iterdir()}


def test_version_2_writes_one_directory(tmp_path: Path) -> None:
    group = Cgroups(version=2, parents=dict.fromkeys(("memory", "pids", "cpu"), tmp_path)).make("g")
    group.limit(Limits(memory=2**30, pids=10, cpus=1.5))
    group.add(7)
    assert files(tmp_path / "g") == {
        "memory.max": "1073741824",
        "memory.swap.max": "0",
        "pids.max": "10",
        "cpu.max": "150000 100000",
        "cgroup.procs": "7",
    }
    group.limit(Limits())
    assert files(tmp_path / "g")["memory.max"] == files(tmp_path / "g")["pids.max"] == "max"
    assert files(tmp_path / "g")["cpu.max"] == "max 100000"


def test_version_1_writes_one_directory_for_each_controller(tmp_path: Path) -> None:
    parents = {name: tmp_path / name for name in ("memory", "pids", "cpu", "cpuacct")}
    for parent in parents.values():
        parent.mkdir()
    group = Cgroups(version=1, parents=parents).make("g")
    group.limit(Limits(memory=2**20, pids=3, cpus=0.5))
    assert files(tmp_path / "memory/g")["memory.limit_in_bytes"] == "1048576"
    assert files(tmp_path / "pids/g") == {"pids.max": "3"}
    assert files(tmp_path / "cpu/g") == {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000"}
    group.limit(Limits())
    assert files(tmp_path / "memory/g")["memory.limit_in_bytes"] == "-1"
    assert files(tmp_path / "cpu/g")["cpu.cfs_quota_us"] == "-1"


def test_figures_are_read(tmp_path: Path) -> None:
    group = Cgroups(version=2, parents=dict.fromkeys(("memory", "pids", "cpu"), tmp_path)).make("g")
    for name, content in {
        "cpu.stat": "usage_usec 2500000\nuser_usec 1\n",
        "memory.current": "4096\n",
        "memory.events": "low 0\noom_kill 2\n",
        "pids.current": "5\n",
    }.items():
        (tmp_path / "g" / name).write_text(content)
    usage = group.usage()
    assert (usage.cpu_time, usage.memory, usage.killed_for_memory, usage.pids) == (2.5, 4096, 2, 5)


def test_only_old_empty_groups_are_swept(tmp_path: Path) -> None:
    groups = Cgroups(version=2, parents={"memory": tmp_path})
    for name in ("old", "busy", "fresh"):
        groups.make(name)
    (tmp_path / "busy" / "child").mkdir()  # as little removable as one with processes
    for name in ("old", "busy"):
        past = (tmp_path / name).stat().st_mtime - SWEEP_AGE - 1
        os.utime(tmp_path / name, (past, past))
    groups.sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["busy", "fresh"]
