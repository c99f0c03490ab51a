"""Removing a sandbox: its environment, its files, its record; in that order, so that nothing is forgotten before it is
gone."""

from __future__ import annotations

import logging

from yaosb_jupyter.choices import Lifecycle, Status
from yaosb_jupyter.core.entry import Entry
from yaosb_jupyter.core.labels import UID, data_dir_labels
from yaosb_jupyter.core.naming import naming
from yaosb_jupyter.core.patience import CHANGE, within
from yaosb_jupyter.core.pool import Pool
from yaosb_jupyter.core.state import State
from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.tai.threads import in_thread

log = logging.getLogger(__name__)


class Remover:
    """A removal that the engine refuses is noted in the record and tried again by the reaper."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def remove(self, entry: Entry) -> None:
        """Goes on to the end when the caller is cancelled. Raises what the engine said."""
        await self._state.tasks.finish(self._remove(entry), f"removing {entry.record.id}")

    async def end_one_shot(self, entry: Entry) -> None:
        """Removes a one-shot sandbox whose command has ended. A refusal is the reaper's business, not the caller's."""
        if entry.record.options.lifecycle is not Lifecycle.ONE_SHOT or entry not in self._state.table:
            return
        try:
            await self.remove(entry)
        except SandboxError as error:
            log.warning("%s", error)

    async def _remove(self, entry: Entry) -> None:
        if entry.build is not None:
            entry.build.cancel()  # it undoes itself, holding the lock
        async with entry.lock:
            if entry not in self._state.table:
                return
            await self._state.save(entry, doomed=True, status=Status.REMOVING, status_reason="")
            await self.destroy(entry)

    async def destroy(self, entry: Entry) -> None:
        """Removes what there is of a doomed sandbox. The caller holds its lock."""
        pool = self._state.pool_of(entry)
        try:
            with naming(entry):
                if pool.retired:
                    await pool.connect()
                await self._remove_environment(entry, pool)
                await self._remove_files(entry)
        except (SandboxError, OSError) as error:
            entry.postpone_retry()
            await self._state.save(
                entry, doomed=True, status=Status.FAILED, status_reason=f"cannot be removed: {error}"
            )
            self._state.alarm.ring()
            raise
        self._state.table.drop(entry)
        entry.update(status=Status.REMOVED)
        self._retire(pool)

    async def _remove_environment(self, entry: Entry, pool: Pool) -> None:
        record = entry.record
        async with within(CHANGE, "remove it", sandbox=record.id, pool=pool.name):
            # By label, not only by id: a creation that was cut short has left no id.
            labels = {**data_dir_labels(self._state.data_dir_id), UID: record.uid}
            found = {state.runtime_id for state in await pool.runtime.list(labels)}
            for runtime_id in found | ({record.runtime_id} - {""}):
                await pool.runtime.remove(runtime_id)
            if not record.options.workspace:
                await pool.runtime.remove_workspace(self._state.spec_of(entry))

    async def _remove_files(self, entry: Entry) -> None:
        record = entry.record
        await in_thread(self._state.store.delete, record.uid, record.owner, record.id)

    def _retire(self, pool: Pool) -> None:
        if pool.retired and not self._state.table.of_pool(pool.name):
            self._state.pools.drop(pool)
            self._state.tasks.forget(pool.close(), f"closing pool {pool.name}")
