"""The manager's core put together: opened on a data directory, closed again, serving callers between."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from pathlib import Path
from typing import Self

from yaosb_jupyter.core.caller import CallerService
from yaosb_jupyter.core.clock import Alarm, Clock, SystemClock
from yaosb_jupyter.core.creation import Creator
from yaosb_jupyter.core.entry import Entry, Table
from yaosb_jupyter.core.following import Follower
from yaosb_jupyter.core.lock import DataDirectoryLock
from yaosb_jupyter.core.observation import Observer
from yaosb_jupyter.core.operations import Operations
from yaosb_jupyter.core.pool import Opener, Pool, Pools
from yaosb_jupyter.core.pooling import Pooling
from yaosb_jupyter.core.reaper import Reaper
from yaosb_jupyter.core.records import RecordStore
from yaosb_jupyter.core.removal import Remover
from yaosb_jupyter.core.service import Caller, Service
from yaosb_jupyter.core.state import State
from yaosb_jupyter.core.tasks import Tasks, log_error
from yaosb_jupyter.core.usage import Usage
from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.settings import Settings
from yaosb_jupyter.tai.proxy.server import Proxy
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.types import PoolSpec

_CLOSE_PATIENCE = 30.0

log = logging.getLogger(__name__)


class Controller:
    """Owns all sandboxes of one data directory. Made by `open`."""

    def __init__(self, state: State, lock: DataDirectoryLock) -> None:
        self._state = state
        self._lock = lock
        remover = Remover(state)
        self.operations = Operations(state)
        self.remover = remover
        self.observer = Observer(state, self.operations, remover)
        self.follower = Follower(state, self.observer)
        self.creator = Creator(state, self.operations, remover)
        self.usage = Usage(state, self.observer, remover)
        self.pooling = Pooling(state, self.follower, remover)
        self.reaper = Reaper(state, self.operations, remover)
        self._reaping: asyncio.Task[None] | None = None
        self._closed = False

    @classmethod
    async def open(cls, settings: Settings, *, opener: Opener, clock: Clock | None = None) -> Self:
        """Takes the data directory, connects the pools, restores what there is, applies the lifecycles from here on.

        Raises `DataDirectoryBusyError`, `NotAvailableError` where no pool can be reached.
        """
        lock = DataDirectoryLock(settings.data_dir)
        try:
            await in_thread(lock.acquire)
            controller = cls(await _make_state(settings, opener, clock or SystemClock()), lock)
        except BaseException:
            await in_thread(lock.release)
            raise
        try:
            await controller._restore()
        except BaseException:
            await controller.close()
            raise
        controller._reaping = asyncio.create_task(controller.reaper.run(), name="reaper")
        controller._reaping.add_done_callback(log_error)
        return controller

    async def _restore(self) -> None:
        state = self._state
        for spec in state.settings.all_pools():
            state.pools.add(spec)
        for record in await in_thread(state.store.load_all):
            # A new entry counts as just used: the grace of one idle period.
            state.table.add(Entry(record, state.clock))
            state.pools.retire(record.pool, record.address)
        await state.pools.connect_all()
        for pool in state.pools.configured():
            if pool.connected:
                await self._reconcile(pool)
            self.follower.begin(pool)
        await in_thread(state.store.sweep)

    async def _reconcile(self, pool: Pool) -> None:
        try:
            await self.observer.reconcile(pool)
        except SandboxError as error:
            log.warning("pool %s cannot be reached: %s", pool.name, error)
            await pool.lose(str(error))

    def for_caller(self, caller: Caller) -> Service:
        """All that ``caller`` may do."""
        return CallerService(self, self._state, caller)

    @property
    def settings(self) -> Settings:
        return self._state.settings

    async def close(self) -> None:
        """Lets go; sandboxes go on. Commands whose output this process was reading are ended. Idempotent."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._wind_down()
        finally:
            await self._state.pools.close()
            await in_thread(_remove_if_empty, self._state.settings.runtime_dir)
            await in_thread(self._lock.release)

    async def _wind_down(self) -> None:
        if self._reaping is not None:
            self._reaping.cancel()
            await asyncio.gather(self._reaping, return_exceptions=True)
        await self.follower.close()
        await self._state.proxy.close()
        await self.usage.close()
        for entry in self._state.table:
            if entry.build is not None:
                entry.build.cancel()
        await self._state.tasks.close(_CLOSE_PATIENCE)
        for entry in self._state.table:
            await self._state.save(entry)


def _remove_if_empty(directory: Path) -> None:
    with suppress(OSError):
        directory.rmdir()


async def _make_state(settings: Settings, opener: Opener, clock: Clock) -> State:
    store = RecordStore(settings.data_dir)

    def make_pool(spec: PoolSpec, retired: bool) -> Pool:
        return Pool(spec, opener=opener, runtime_dir=settings.runtime_dir, retired=retired)

    def open_directories() -> str:
        settings.runtime_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        return store.open()

    return State(
        settings=settings,
        clock=clock,
        store=store,
        data_dir_id=await in_thread(open_directories),
        table=Table(),
        pools=Pools(make_pool),
        tasks=Tasks(),
        proxy=Proxy(clock.monotonic),
        alarm=Alarm(clock),
    )
