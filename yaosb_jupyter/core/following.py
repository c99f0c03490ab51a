"""Keeping in touch with each pool's engine: connect, reconcile, follow its events; when it goes away, again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from yaosb_jupyter.core.observation import Observer
from yaosb_jupyter.core.pool import Pool
from yaosb_jupyter.core.state import State
from yaosb_jupyter.errors import RuntimeUnavailableError, SandboxError
from yaosb_jupyter.tai.runtimes.base import EnvironmentEvent

FIRST_RETRY = 0.5
LAST_RETRY = 30.0
RESYNC = 60.0  # events may be missed; what an engine holds is compared this often

log = logging.getLogger(__name__)


class Follower:
    def __init__(self, state: State, observer: Observer) -> None:
        self._state = state
        self._observer = observer
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, pool: Pool) -> None:
        self._tasks[pool.name] = asyncio.create_task(self._follow(pool), name=f"following pool {pool.name}")

    async def end(self, pool: Pool) -> None:
        task = self._tasks.pop(pool.name, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, pool: Pool) -> None:
        delay = FIRST_RETRY
        while True:
            try:
                if not pool.connected:
                    await pool.connect()
                    self._give_grace(pool)
                delay = FIRST_RETRY
                await self._watch(pool)
            except SandboxError as error:
                if pool.connected:
                    log.warning("pool %s cannot be reached any more: %s", pool.name, error)
                await pool.lose(str(error))
            except Exception as error:
                # A fault of the runtime's own: without a follower nothing would ever be told of this pool again.
                log.exception("following pool %s failed", pool.name)
                await pool.lose(f"{type(error).__name__}: {error}")
            await asyncio.sleep(delay)
            delay = min(delay * 2, LAST_RETRY)

    async def _watch(self, pool: Pool) -> None:
        """Until the engine goes away, which raises."""
        events = asyncio.create_task(self._pump(pool), name=f"events of pool {pool.name}")
        try:
            while not events.done():
                await self._observer.reconcile(pool)
                await asyncio.wait({events}, timeout=RESYNC)
            await events
        finally:
            events.cancel()
            await asyncio.gather(events, return_exceptions=True)

    async def _pump(self, pool: Pool) -> None:
        events = cast(AsyncGenerator[EnvironmentEvent, None], pool.runtime.events())
        async with aclosing(events):
            async for event in events:
                self._observer.event(pool, event)
        raise RuntimeUnavailableError("the engine's events ended", pool=pool.name)

    def _give_grace(self, pool: Pool) -> None:
        # Nobody could use them meanwhile, so the time away is no idleness.
        for entry in self._state.table.of_pool(pool.name):
            entry.activity.touch()
        self._state.alarm.ring()
