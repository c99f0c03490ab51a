"""What each kind of record looks like in a cell."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime

from yaosb_jupyter.choices import Status
from yaosb_jupyter.jupyter.cards import Card, Column, Fact, Listing, Section, State, Tone
from yaosb_jupyter.options import PortMapping
from yaosb_jupyter.types import FileInfo, Isolation, PoolInfo, SandboxInfo, SandboxStats
from yaosb_jupyter.units import format_duration, format_size

_TONES: dict[Status, Tone] = {
    Status.CREATED: "idle",
    Status.STARTING: "busy",
    Status.RUNNING: "ok",
    Status.PAUSED: "idle",
    Status.STOPPING: "busy",
    Status.STOPPED: "idle",
    Status.REMOVING: "busy",
    Status.REMOVED: "idle",
    Status.FAILED: "bad",
}


@dataclass(frozen=True, kw_only=True, repr=False)
class SandboxCard(Card):
    """A sandbox; ``info`` is what the card was made from."""

    info: SandboxInfo


@dataclass(frozen=True, kw_only=True, repr=False)
class StatsCard(Card):
    """What a sandbox used; ``stats`` are the numbers."""

    stats: SandboxStats


def sandbox_card(info: SandboxInfo, *, now: datetime | None = None) -> SandboxCard:
    """A sandbox with all that is known of it; the isolation is folded."""
    moment = now or datetime.now(UTC)
    facts: list[Fact] = [
        ("image", info.image),
        ("lifecycle", _lifecycle(info)),
        ("reason", info.status_reason),
        ("created", ago(info.created_at, moment)),
        ("last used", ago(info.last_active, moment)),
        ("ends", _until(info.expires_at, moment)),
        ("processes", str(info.process_count) if info.process_count else ""),
        ("address", info.ip),
        ("ports", ", ".join(map(_port, info.ports))),
        ("desktop", info.vnc_status.value if info.vnc_status else "yes" if info.vnc else ""),
        ("chat", info.chat),
        ("labels", ", ".join(f"{key}={value}" for key, value in info.labels.items())),
    ]
    told = isolation_facts(info.isolation) if info.isolation else []
    return SandboxCard(
        info=info,
        title=info.id,
        state=sandbox_state(info),
        subtitle=f"pool {info.pool}",
        facts=[*facts, *told[:1]],
        sections=[Section(title="what it is kept from", facts=told[1:])] if told else [],
        notes=info.warnings,
    )


def stats_card(info: SandboxInfo, stats: SandboxStats) -> StatsCard:
    """What a sandbox uses now."""
    memory = format_size(stats.memory)
    if stats.memory_limit:
        memory += f" of {format_size(stats.memory_limit)} ({stats.memory / stats.memory_limit:.0%})"
    traffic = f"{format_size(stats.network_rx)} in, {format_size(stats.network_tx)} out"
    return StatsCard(
        stats=stats,
        title=info.id,
        state=sandbox_state(info),
        facts=[
            ("CPU", f"{stats.cpu_percent:.0f} % of a core"),
            ("memory", memory),
            ("processes", f"{stats.pids}, threads included"),
            ("network", traffic if stats.network_rx or stats.network_tx else ""),
        ],
    )


def sandbox_listing(
    infos: Sequence[SandboxInfo], current: str = "", now: datetime | None = None
) -> Listing[SandboxInfo]:
    """Sandboxes; the one this notebook uses is marked."""
    moment = now or datetime.now(UTC)
    columns: list[Column[SandboxInfo]] = [
        Column(title="id", cell=lambda info: info.id, strong=True),
        Column(title="in use", cell=lambda info: "here" if info.uid == current else ""),
        Column(title="status", cell=sandbox_state),
        Column(title="pool", cell=lambda info: info.pool),
        Column(title="image", cell=lambda info: info.image),
        Column(title="lifecycle", cell=lambda info: info.lifecycle.value),
        Column(title="created", cell=lambda info: ago(info.created_at, moment), right=True),
        Column(title="last used", cell=lambda info: ago(info.last_active, moment), right=True),
        Column(title="ends", cell=lambda info: _until(info.expires_at, moment), right=True),
        Column(title="reason", cell=lambda info: info.status_reason),
    ]
    return Listing(infos, columns, empty="no sandboxes (make one: %sandbox create NAME)")


def pool_listing(pools: Sequence[PoolInfo]) -> Listing[PoolInfo]:
    """Pools, with what their sandboxes are kept from as it was probed."""
    columns: list[Column[PoolInfo]] = [
        Column(title="pool", cell=lambda pool: pool.name, strong=True),
        Column(title="state", cell=_pool_state),
        Column(title="runtime", cell=lambda pool: pool.runtime),
        Column(title="address", cell=lambda pool: pool.address),
        Column(title="sandboxes", cell=_pool_use),
        *(_isolation_column(field, name) for field, name in _ISOLATION_NAMES.items()),
        Column(title="error", cell=lambda pool: pool.error),
    ]
    return Listing(pools, columns, empty="no pools", upright=False)


def file_listing(files: Sequence[FileInfo], *, title: str = "", now: datetime | None = None) -> Listing[FileInfo]:
    """Files of a workspace, directories first, with a ``/``; of very many the first are shown."""
    moment = now or datetime.now(UTC)
    columns: list[Column[FileInfo]] = [
        Column(title="name", cell=_file_name, strong=True),
        Column(title="size", cell=_file_size, right=True),
        Column(title="modified", cell=lambda file: ago(datetime.fromtimestamp(file.mtime, UTC), moment), right=True),
        Column(title="mode", cell=lambda file: stat.filemode(file.mode)),
        Column(title="leads to", cell=lambda file: file.link_target or ""),
    ]
    ordered = sorted(files, key=lambda file: (not file.is_dir, file.name))
    directories = sum(file.is_dir for file in files)
    size = format_size(sum(file.size for file in files if stat.S_ISREG(file.mode)))
    counts = [_several(directories, "directory", "directories"), _several(len(files) - directories, "file", "files")]
    notes = [", ".join(count for count in counts if count) + f", {size}"] if files else []
    return Listing(ordered, columns, empty="no files", title=title, notes=notes)


def sandbox_state(info: SandboxInfo) -> State:
    """The status, and whether its host answers."""
    if not info.reachable:
        return State(f"{info.status.value}, unreachable", "bad")
    return State(info.status.value, _TONES[info.status])


def isolation_facts(isolation: Isolation) -> list[Fact]:
    """The isolation's fields, named for people."""
    return [(name, getattr(isolation, field)) for field, name in _ISOLATION_NAMES.items()]


def ago(moment: datetime, now: datetime) -> str:
    """How long before ``now``, roughly: ``"12 s ago"``."""
    seconds = (now - moment).total_seconds()
    return "just now" if seconds < 1 else f"{_roughly(seconds)} ago"


_SPELLING = {"means": "isolation", "unix_sockets": "Unix sockets", "lan": "LAN", "cpu": "CPU"}
_ISOLATION_NAMES = {field.name: _SPELLING.get(field.name, field.name.replace("_", " ")) for field in fields(Isolation)}


def _isolation_column(field: str, name: str) -> Column[PoolInfo]:
    return Column(title=name, cell=lambda pool: getattr(pool.isolation, field) if pool.isolation else "")


def _until(moment: datetime | None, now: datetime) -> str:
    if moment is None:
        return ""
    seconds = (moment - now).total_seconds()
    return f"in {_roughly(seconds)}" if seconds >= 1 else "now"


def _roughly(seconds: float) -> str:
    number, unit = format_duration(seconds).split()[:2]
    return f"{float(number):.0f} {unit}"


def _lifecycle(info: SandboxInfo) -> str:
    parts = [info.lifecycle.value]
    if info.idle_timeout:
        parts.append(f"idle for at most {format_duration(info.idle_timeout)}")
    if info.max_lifetime:
        parts.append(f"lives at most {format_duration(info.max_lifetime)}")
    return ", ".join(parts)


def _port(port: PortMapping) -> str:
    protocol = "" if port.protocol == "tcp" else f"/{port.protocol}"
    return f"{port.container_port}{protocol} at {port.host_ip}:{port.host_port}"


def _pool_state(pool: PoolInfo) -> State:
    return State("connected", "ok") if pool.connected else State("not connected", "bad")


def _pool_use(pool: PoolInfo) -> str:
    limit = f" of {pool.limits.max_total}" if pool.limits.max_total else ""
    return f"{pool.running} running, {pool.total}{limit} in all"


def _several(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}" if count else ""


def _file_name(file: FileInfo) -> str:
    return f"{file.name}/" if file.is_dir else file.name


def _file_size(file: FileInfo) -> str:
    return format_size(file.size) if stat.S_ISREG(file.mode) else ""
