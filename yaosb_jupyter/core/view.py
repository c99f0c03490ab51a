"""What callers see of sandboxes and pools. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from yaosb_jupyter.choices import Status
from yaosb_jupyter.core.entry import Entry
from yaosb_jupyter.core.pool import Pool
from yaosb_jupyter.types import ListFilter, PoolInfo, SandboxInfo


def sandbox_info(entry: Entry, pool: Pool, now: datetime, warnings: tuple[str, ...] = ()) -> SandboxInfo:
    record, options = entry.record, entry.record.options
    due = entry.deadline()
    return SandboxInfo(
        uid=record.uid,
        id=record.id,
        runtime_id=record.runtime_id,
        pool=record.pool,
        owner=record.owner,
        chat=options.chat,
        image=options.image,
        status=record.status,
        status_reason=record.status_reason,
        reachable=pool.connected,
        lifecycle=options.lifecycle,
        labels=options.labels,
        ip=record.ip,
        created_at=record.created_at,
        last_active=entry.last_active(),
        process_count=record.process_count,
        idle_timeout=options.idle_timeout or 0.0,
        max_lifetime=options.max_lifetime or 0.0,
        expires_at=None if due is None else now + timedelta(seconds=max(0.0, due.due_in)),
        vnc=options.vnc,
        ports=record.ports,
        link=record.link,
        isolation=record.isolation,
        warnings=warnings + tuple(f"{name} could not be restored" for name in record.lost),
    )


def pool_info(pool: Pool, entries: Iterable[Entry]) -> PoolInfo:
    held = list(entries)
    return PoolInfo(
        name=pool.name,
        address=pool.address,
        runtime=pool.info.kind if pool.info else "",
        is_local=pool.info.is_local if pool.info else False,
        connected=pool.connected,
        error=pool.error,
        running=sum(entry.record.status is Status.RUNNING for entry in held),
        total=len(held),
        limits=pool.spec.limits,
        isolation=pool.info.isolation if pool.info else None,
    )


def matches(entry: Entry, filter: ListFilter) -> bool:
    record, options = entry.record, entry.record.options
    return (
        filter.owner in ("", record.owner)
        and filter.status in (None, record.status)
        and filter.lifecycle in (None, options.lifecycle)
        and filter.pool in ("", record.pool)
        and all(options.labels.get(key) == value for key, value in filter.labels.items())
    )
