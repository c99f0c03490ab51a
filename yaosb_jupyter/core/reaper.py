"""Applies the lifecycles when their time has come, and tries refused removals again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container

from yaosb_jupyter.choices import Status
from yaosb_jupyter.core.entry import Entry
from yaosb_jupyter.core.operations import Operations
from yaosb_jupyter.core.policy import Action, Deadline
from yaosb_jupyter.core.removal import Remover
from yaosb_jupyter.core.state import State
from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.units import format_duration

LONGEST_SLEEP = 60.0

log = logging.getLogger(__name__)


class Reaper:
    """Sleeps until the nearest deadline, at most a minute; see `Alarm`."""

    def __init__(self, state: State, operations: Operations, remover: Remover) -> None:
        self._state = state
        self._operations = operations
        self._remover = remover
        self._reaping: set[str] = set()

    async def run(self) -> None:
        """For ever."""
        while True:
            for entry in self._due(but=self._reaping):
                self._reaping.add(entry.uid)
                self._state.tasks.forget(self._reap_aside(entry), f"reaping {entry.record.id}")
            try:
                await self._keep_last_active()
            except OSError as error:  # a full disk must not end the reaper
                log.warning("the times of last use cannot be written: %s", error)
            await self._state.alarm.wait(self._nearest())

    async def sweep(self) -> list[str]:
        """Does what is due now; returns the ids of what was stopped or removed."""
        due = self._due(but=())
        done = await asyncio.gather(*(self._reap(entry) for entry in due))
        return [entry.record.id for entry, acted in zip(due, done, strict=True) if acted]

    def _due(self, but: Container[str]) -> list[Entry]:
        return [entry for entry, due_in in self._deadlines(but) if due_in <= 0]

    def _nearest(self) -> float:
        return max(0.0, min([LONGEST_SLEEP, *(due_in for _, due_in in self._deadlines(but=self._reaping))]))

    def _deadlines(self, but: Container[str]) -> list[tuple[Entry, float]]:
        entries = (entry for entry in self._state.table if entry.uid not in but and self._can_act(entry))
        found = ((entry, entry.due_in()) for entry in entries)
        return [(entry, due_in) for entry, due_in in found if due_in is not None]

    def _can_act(self, entry: Entry) -> bool:
        pool = self._state.pool_of(entry)
        return entry.build is None and (pool.connected or (pool.retired and entry.record.doomed))

    async def _reap_aside(self, entry: Entry) -> None:
        try:
            await self._reap(entry)
        finally:
            self._reaping.discard(entry.uid)
            self._state.alarm.ring()

    async def _reap(self, entry: Entry) -> bool:
        try:
            async with entry.lock:
                # Asked again under the lock: it may have been used, or removed, meanwhile.
                due = entry.due_in()
                if entry not in self._state.table or due is None or due > 0:
                    return False
                return await self._act(entry)
        except SandboxError as error:
            if not entry.record.doomed:  # else the remover has noted it
                entry.postpone_retry()
            log.warning("%s", error)
            return False

    async def _act(self, entry: Entry) -> bool:
        if entry.record.doomed:
            await self._remover.destroy(entry)
            return True
        deadline = entry.deadline()
        assert deadline is not None  # due, and not doomed
        why = _reason(deadline, entry)
        if entry.record.status in (Status.RUNNING, Status.PAUSED):
            await self._operations.halt(entry, reason=why)
        if deadline.action is Action.REMOVE:
            await self._state.save(entry, doomed=True, status=Status.REMOVING, status_reason=why)
            await self._remover.destroy(entry)
        return True

    async def _keep_last_active(self) -> None:
        """Writes the times of last use, which change with every call, once in a while."""
        for entry in self._state.table:
            unwritten = entry.last_active() - entry.record.last_active
            if entry.lock.locked() or unwritten.total_seconds() < LONGEST_SLEEP:
                continue
            async with entry.lock:
                if entry in self._state.table:
                    await self._state.save(entry)


def _reason(deadline: Deadline, entry: Entry) -> str:
    if deadline.by_age:
        return f"its max_lifetime of {format_duration(entry.record.options.max_lifetime or 0.0)} was over"
    return f"idle for {format_duration(entry.activity.idle)}"
