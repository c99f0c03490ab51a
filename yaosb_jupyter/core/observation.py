"""What engines tell: events, and lists of what they hold. Joins it with the records."""

from __future__ import annotations

import logging
from dataclasses import replace

from yaosb_jupyter.choices import Lifecycle, Status
from yaosb_jupyter.core.defaults import complete
from yaosb_jupyter.core.entry import Entry
from yaosb_jupyter.core.labels import POOL, UID, data_dir_labels, from_labels
from yaosb_jupyter.core.operations import Operations
from yaosb_jupyter.core.patience import ASK, within
from yaosb_jupyter.core.pool import Pool
from yaosb_jupyter.core.removal import Remover
from yaosb_jupyter.core.state import State
from yaosb_jupyter.errors import NotFoundError, RuntimeUnavailableError, SandboxError
from yaosb_jupyter.tai.runtimes.base import EnvironmentEvent, EnvironmentState
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.types import SandboxRecord

GONE = "its environment was removed by somebody else"

log = logging.getLogger(__name__)


class Observer:
    def __init__(self, state: State, operations: Operations, remover: Remover) -> None:
        self._state = state
        self._operations = operations
        self._remover = remover

    def event(self, pool: Pool, event: EnvironmentEvent) -> None:
        """Takes note of an event, which may tell of our own doing as well as of others'."""
        entry = self._state.table.of_environment(pool.name, event.runtime_id)
        if entry is None or (event.status is entry.record.status and not entry.lock.locked()):
            return
        self._state.tasks.forget(self.refresh(entry, event.reason), f"looking at {entry.record.id}")

    async def refresh(self, entry: Entry, reason: str = "") -> None:
        """Asks the engine and puts the record right. ``reason``: what was heard meanwhile."""
        async with entry.lock:
            record = entry.record
            if entry not in self._state.table or record.doomed or not record.runtime_id:
                return
            pool = self._state.pool_of(entry)
            try:
                async with within(ASK, "tell its state", sandbox=record.id, pool=pool.name):
                    found = await pool.runtime.inspect(record.runtime_id)
            except NotFoundError:
                await self._gone(entry, reason or GONE)
                return
            if found.status is not record.status:
                await self._state.save(
                    entry,
                    status=found.status,
                    status_reason=found.reason or reason,
                    ip=found.ip,
                    ports=found.ports or record.ports,
                    link=found.link,
                )
                self._state.alarm.ring()

    async def _gone(self, entry: Entry, reason: str) -> None:
        if entry.record.options.lifecycle is Lifecycle.ONE_SHOT:
            await self._state.save(entry, doomed=True, status=Status.REMOVING, status_reason=reason)
            await self._remover.destroy(entry)
        elif entry.record.status is not Status.FAILED:
            await self._operations.vanished(entry, reason)

    async def reconcile(self, pool: Pool) -> None:
        """Joins what the engine holds with what the table holds, both ways. Raises `RuntimeUnavailableError`."""
        known = self._state.table.of_pool(pool.name)  # those whose absence from the list will mean something
        async with within(ASK, "list its environments", pool=pool.name):
            states = await pool.runtime.list(data_dir_labels(self._state.data_dir_id))
        held = {state.runtime_id: state for state in states}
        for entry in known:
            await self._tolerantly(entry.record.id, self._join(entry, held))
        for state in states:
            if state.labels.get(UID) and self._state.table.get(state.labels[UID]) is None:
                await self._tolerantly(state.name, self._adopt(pool, state))
        for state in states:
            found = self._state.table.get(state.labels.get(UID, ""))
            if found is not None and found.record.pool == pool.name:
                await self._tolerantly(state.name, pool.runtime.take_up(state))

    async def _tolerantly(self, name: str, work: object) -> None:
        # One sandbox that makes trouble keeps no other from being restored; an engine that is away does.
        try:
            await work  # type: ignore[misc]
        except RuntimeUnavailableError:
            raise
        except (SandboxError, OSError) as error:
            log.warning("%s cannot be restored: %s", name, error)

    async def _join(self, entry: Entry, held: dict[str, EnvironmentState]) -> None:
        record = entry.record
        if entry.lock.locked() or entry.build is not None or record.doomed or entry not in self._state.table:
            return  # whoever is at work on it will know
        if not record.runtime_id:
            log.info("%s: its creation was interrupted; it is removed", record.id)
            await self._remover.remove(entry)
            return
        state = held.get(record.runtime_id)
        if state is None:
            again = [other for other in held.values() if other.labels.get(UID) == record.uid]
            if again:  # made anew by a start that was interrupted
                entry.update(runtime_id=again[0].runtime_id)
        if state is None or state.status is not record.status:
            await self.refresh(entry)

    async def _adopt(self, pool: Pool, state: EnvironmentState) -> None:
        named = self._state.pools.find(state.labels.get(POOL, ""))
        if named is not None and named is not pool and not named.retired and named.address == pool.address:
            return  # that one will
        async with within(ASK, "tell the state of what it holds", pool=pool.name):
            try:
                state = await pool.runtime.inspect(state.runtime_id)
            except NotFoundError:
                return  # removed since it was listed
        record = from_labels(state, pool=pool.name, now=self._state.clock.now())
        if record is None or self._state.table.get(record.uid) is not None:
            return
        entry = Entry(self._completed(record, pool), self._state.clock)
        self._state.table.add(entry)
        if state.status is Status.CREATED and record.options.start:
            log.info("%s: its creation was interrupted; it is removed", record.id)
            await self._remover.remove(entry)
            return
        async with within(ASK, "tell what it made", sandbox=record.id, pool=pool.name):
            await self._operations.look_at(entry, state.runtime_id)
        log.warning("%s: its record was lost and is restored from its labels", record.id)
        await in_thread(self._state.store.prepare, entry.record)
        self._state.alarm.ring()

    def _completed(self, record: SandboxRecord, pool: Pool) -> SandboxRecord:
        info = pool.host.info
        options = complete(record.options, pool.spec, self._state.settings, info)
        id = record.id
        if self._state.table.of(record.owner, id) is not None:
            id = f"{id[:120]}-{record.uid[-6:].lower()}"
        return replace(record, id=id, options=replace(options, id=id), isolation=info.isolation, address=pool.address)
