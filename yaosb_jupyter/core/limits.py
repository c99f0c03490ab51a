"""How many sandboxes there may be. Pure.

The table is the count: a sandbox is in it from the moment its creation is admitted until its engine has agreed that it
is gone, and admission checks and enters it without an await between. So no limit is passed by concurrent creates.
"""

from __future__ import annotations

from collections.abc import Iterable

from yaosb_jupyter.errors import LimitExceededError
from yaosb_jupyter.types import PoolSpec, SandboxRecord


def check_limits(records: Iterable[SandboxRecord], *, pool: PoolSpec, owner: str, max_sandboxes: int) -> None:
    """Raises `LimitExceededError` where one more of ``owner`` in ``pool`` would pass a limit. 0 means no limit."""
    existing = list(records)
    in_pool = [record for record in existing if record.pool == pool.name]
    of_owner = [record for record in in_pool if record.owner == owner]
    limits = (
        ("the manager's limit", "YAO_SANDBOX_MAX", len(existing), max_sandboxes),
        (f"the limit of pool {pool.name!r}", "max_total", len(in_pool), pool.limits.max_total),
        (f"{owner!r}'s limit in pool {pool.name!r}", "max_per_user", len(of_owner), pool.limits.max_per_user),
    )
    for whose, name, count, limit in limits:
        if limit and count >= limit:
            raise LimitExceededError(
                f"{whose} of {limit} sandboxes is reached ({count} exist, stopped ones too)",
                hint=f"remove one, or raise {name}",
            )
