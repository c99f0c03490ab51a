"""Control groups, where this process may make them: limits and figures of one sandbox as a whole.

Both versions of the kernel's interface; what is there is found by trying. All calls block for a moment.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CONTROLLERS = ("memory", "pids", "cpu")
PERIOD = 100_000
"""Microseconds over which a share of the CPU is counted."""
PARENT = "yaosb"
SWEEP_AGE = 600.0
"""Seconds after which an empty group is nobody's that is about to use it."""

_MOUNT_TYPES = ("cgroup", "cgroup2")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """0 is no limit. ``memory`` bytes, ``cpus`` cores."""

    memory: int = 0
    pids: int = 0
    cpus: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Usage:
    """``cpu_time`` seconds since the group was made."""

    memory: int
    pids: int
    cpu_time: float
    killed_for_memory: int


@dataclass(frozen=True, kw_only=True)
class Group:
    """One sandbox's group: a directory for each controller; in version 2 all are the same."""

    version: int
    paths: Mapping[str, Path]

    def limit(self, limits: Limits) -> None:
        """Raises `OSError` where the kernel refuses a value."""
        settings = _settings_v2(limits) if self.version == 2 else _settings_v1(limits)
        for controller, name, value, needed in settings:
            if controller not in self.paths:
                continue
            try:
                (self.paths[controller] / name).write_text(value)
            except OSError:
                if needed:
                    raise

    def add(self, pid: int) -> None:
        """Moves a process, and with it what it starts."""
        for path in self._directories():
            (path / "cgroup.procs").write_text(str(pid))

    def pids(self) -> Sequence[int]:
        for path in self._directories():
            with contextlib.suppress(OSError):
                return [int(line) for line in (path / "cgroup.procs").read_text().split()]
        return []

    def usage(self) -> Usage:
        if self.version == 2:
            cpu = _figures(self.paths["cpu"] / "cpu.stat").get("usage_usec", 0) / 1e6
            memory = _number(self.paths["memory"] / "memory.current")
            killed = _figures(self.paths["memory"] / "memory.events").get("oom_kill", 0)
        else:
            cpu = _number(self.paths["cpuacct"] / "cpuacct.usage") / 1e9 if "cpuacct" in self.paths else 0.0
            memory = _memory_v1(self.paths["memory"])
            killed = _figures(self.paths["memory"] / "memory.oom_control").get("oom_kill", 0)
        pids = _number(self.paths["pids"] / "pids.current")
        return Usage(memory=memory, pids=pids, cpu_time=cpu, killed_for_memory=killed)

    def remove(self, patience: float = 2.0) -> None:
        """Once its processes are gone; what stays is left to `sweep`."""
        deadline = time.monotonic() + patience
        for path in self._directories():
            while True:
                try:
                    path.rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        return
                    time.sleep(0.005)  # the kernel buries the last processes
                else:
                    break

    def _directories(self) -> Iterable[Path]:
        return dict.fromkeys(self.paths.values())


@dataclass(frozen=True, kw_only=True)
class Cgroups:
    """Where groups can be made. ``controllers`` that hold limits here."""

    version: int
    parents: Mapping[str, Path]

    @property
    def controllers(self) -> frozenset[str]:
        return frozenset(self.parents) & frozenset(CONTROLLERS)

    def group(self, name: str) -> Group:
        """The group of that name, which may not be there yet."""
        return Group(version=self.version, paths={key: parent / name for key, parent in self.parents.items()})

    def make(self, name: str) -> Group:
        group = self.group(name)
        for path in group.paths.values():
            path.mkdir(exist_ok=True)
        return group

    def sweep(self) -> None:
        """Removes groups without processes that a daemon which was killed left behind."""
        for parent in dict.fromkeys(self.parents.values()):
            for path in parent.iterdir():
                with contextlib.suppress(OSError):  # it has processes, or another was faster
                    if path.is_dir() and time.time() - path.stat().st_mtime > SWEEP_AGE:
                        path.rmdir()


def find_cgroups() -> Cgroups | None:
    """The groups this process can make and limit, or None."""
    mounts = _mounts()
    own = _own_groups()
    v1 = {
        name: mounts[name] / own.get(name, "/").lstrip("/") / PARENT
        for name in (*CONTROLLERS, "cpuacct")
        if name in mounts
    }
    if set(CONTROLLERS) <= set(v1):
        return _tried(Cgroups(version=1, parents=v1))
    if "" in mounts:
        here = mounts[""] / own.get("", "/").lstrip("/")
        for above in (here, here.parent):
            found = _tried(Cgroups(version=2, parents=dict.fromkeys(CONTROLLERS, above / PARENT)))
            if found is not None:
                return found
    return None


def _tried(cgroups: Cgroups) -> Cgroups | None:
    """What works, found by making a group with limits and removing it."""
    try:
        for parent in cgroups.parents.values():
            parent.mkdir(exist_ok=True)
            if cgroups.version == 2:
                for directory in (parent.parent, parent):
                    (directory / "cgroup.subtree_control").write_text("+memory +pids +cpu")
        group = cgroups.make(f"try-{secrets.token_hex(4)}")
    except OSError:
        return None
    try:
        group.limit(Limits(memory=2**26, pids=100, cpus=1.0))
        group.usage()
    except (OSError, ValueError):
        return None
    finally:
        group.remove()
    return cgroups


def _settings_v1(limits: Limits) -> Sequence[tuple[str, str, str, bool]]:
    quota = int(limits.cpus * PERIOD) if limits.cpus else -1
    memory = str(limits.memory or -1)
    return (
        ("memory", "memory.limit_in_bytes", memory, True),
        ("memory", "memory.memsw.limit_in_bytes", memory, False),  # only where swap is counted
        ("pids", "pids.max", str(limits.pids or "max"), True),
        ("cpu", "cpu.cfs_period_us", str(PERIOD), True),
        ("cpu", "cpu.cfs_quota_us", str(quota), True),
    )


def _settings_v2(limits: Limits) -> Sequence[tuple[str, str, str, bool]]:
    quota = str(int(limits.cpus * PERIOD)) if limits.cpus else "max"
    return (
        ("memory", "memory.max", str(limits.memory or "max"), True),
        ("memory", "memory.swap.max", "0" if limits.memory else "max", False),
        ("pids", "pids.max", str(limits.pids or "max"), True),
        ("cpu", "cpu.max", f"{quota} {PERIOD}", True),
    )


def _memory_v1(path: Path) -> int:
    """Without the files that the kernel keeps in memory as long as nobody needs it."""
    figures = _figures(path / "memory.stat")
    return max(_number(path / "memory.usage_in_bytes") - figures.get("total_inactive_file", 0), 0)


def _mounts() -> Mapping[str, Path]:
    """Controller name to mount point; ``""`` is version 2's."""
    found: dict[str, Path] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        if kind not in _MOUNT_TYPES:
            continue
        point = Path(fields.split(" ")[4])
        names = [""] if kind == "cgroup2" else options.split(",")
        for name in names:
            found.setdefault(name, point)
    return found


def _own_groups() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(","):
            found[name] = path
    return found


def _figures(path: Path) -> Mapping[str, int]:
    pairs = (line.split() for line in path.read_text().splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _number(path: Path) -> int:
    return int(path.read_text())
