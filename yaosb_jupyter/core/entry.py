"""One sandbox in memory: its record, and what is going on with it. The table of all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from yaosb_jupyter.core.activity import Activity
from yaosb_jupyter.core.clock import Clock
from yaosb_jupyter.core.names import is_uid
from yaosb_jupyter.core.policy import Deadline, Standing, deadline
from yaosb_jupyter.core.service import Caller
from yaosb_jupyter.errors import AlreadyExistsError, InvalidOptionError, NotFoundError
from yaosb_jupyter.types import SandboxRecord

_FIRST_RETRY = 1.0
_LAST_RETRY = 60.0


class Entry:
    """A sandbox that the manager holds. Whoever changes its state holds ``lock``; commands need not."""

    def __init__(self, record: SandboxRecord, clock: Clock) -> None:
        self.record = record
        self.lock = asyncio.Lock()
        self.activity = Activity(clock)
        self.build: asyncio.Task[None] | None = None
        self._clock = clock
        self._born = clock.monotonic() - max(0.0, (clock.now() - record.created_at).total_seconds())
        self._retries = 0
        self._retry_at = 0.0

    @property
    def uid(self) -> str:
        return self.record.uid

    @property
    def key(self) -> tuple[str, str]:
        return self.record.owner, self.record.id

    def update(self, **changes: Any) -> SandboxRecord:
        self.record = replace(self.record, **changes)
        return self.record

    def deadline(self) -> Deadline | None:
        options = self.record.options
        return deadline(
            Standing(
                lifecycle=options.lifecycle,
                status=self.record.status,
                idle_timeout=options.idle_timeout or 0.0,
                max_lifetime=options.max_lifetime or 0.0,
                age=self._clock.monotonic() - self._born,
                idle=self.activity.idle,
                busy=self.activity.busy or self.build is not None,
            )
        )

    def last_active(self) -> datetime:
        """When it was last used, before the manager's own restart too."""
        if not self.activity.used:
            return self.record.last_active
        return self._clock.now() - timedelta(seconds=self.activity.idle)

    async def built(self) -> None:
        """Returns when its creation is over, should it be under way. However that ended."""
        if self.build is not None:
            await asyncio.wait({self.build})

    def postpone_retry(self) -> None:
        """Notes that the engine refused: the reaper's next try comes later each time."""
        self._retry_at = self._clock.monotonic() + min(_FIRST_RETRY * 2**self._retries, _LAST_RETRY)
        self._retries += 1

    def due_in(self) -> float | None:
        """Seconds until the reaper has something to do with it; None for never."""
        retry_in = self._retry_at - self._clock.monotonic()
        if self.record.doomed:
            return retry_in
        due = self.deadline()
        return None if due is None else max(due.due_in, retry_in)


class Table:
    """All sandboxes of the manager, stopped and failed ones too."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._by_key: dict[tuple[str, str], Entry] = {}

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries.values()))

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, entry: object) -> bool:
        return isinstance(entry, Entry) and self._entries.get(entry.uid) is entry

    def get(self, uid: str) -> Entry | None:
        return self._entries.get(uid)

    def of(self, owner: str, id: str) -> Entry | None:
        return self._by_key.get((owner, id))

    def of_chat(self, owner: str, chat: str) -> Entry | None:
        found = (entry for entry in self if entry.record.owner == owner and entry.record.options.chat == chat)
        return max(found, key=lambda entry: entry.record.created_at, default=None)

    def of_pool(self, pool: str) -> list[Entry]:
        return [entry for entry in self if entry.record.pool == pool]

    def of_environment(self, pool: str, runtime_id: str) -> Entry | None:
        return next((entry for entry in self.of_pool(pool) if entry.record.runtime_id == runtime_id), None)

    def check_free(self, owner: str, id: str) -> None:
        """Raises `AlreadyExistsError` where the owner has one of that id."""
        if (owner, id) in self._by_key:
            raise AlreadyExistsError(
                "it exists already",
                sandbox=id,
                hint="choose another id, or --reuse it (get_or_create)",
            )

    def add(self, entry: Entry) -> None:
        """Raises `AlreadyExistsError`."""
        self.check_free(*entry.key)
        self._entries[entry.uid] = self._by_key[entry.key] = entry

    def drop(self, entry: Entry) -> None:
        if entry in self:
            del self._entries[entry.uid]
            del self._by_key[entry.key]

    def find(self, ref: str, caller: Caller) -> Entry:
        """By id or uid. Raises `NotFoundError`, for another owner's too."""
        own = self.of(caller.owner, ref)
        if own is not None:
            return own
        entry = self._entries.get(ref) if is_uid(ref) else None
        if entry is not None and (caller.admin or entry.record.owner == caller.owner):
            return entry
        others = [entry for entry in self if entry.record.id == ref] if caller.admin else []
        if len(others) > 1:
            uids = ", ".join(f"{entry.uid} of {entry.record.owner}" for entry in others)
            raise InvalidOptionError(
                "several owners have a sandbox of that id", sandbox=ref, hint=f"name one by uid: {uids}"
            )
        if others:
            return others[0]
        raise NotFoundError("there is no such sandbox", sandbox=ref, hint="the list of sandboxes tells their ids")
