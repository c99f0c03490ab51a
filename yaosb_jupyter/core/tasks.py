"""Work that outlives the call that began it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)


class Tasks:
    """Keeps background tasks referenced, logs what they raise, and ends them on `close`."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Begins ``work`` for somebody who awaits the task."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def forget(self, work: Coroutine[Any, Any, T], name: str) -> None:
        """Begins ``work`` that nobody awaits; an error is logged."""
        self.start(work, name).add_done_callback(log_error)

    async def finish(self, work: Coroutine[Any, Any, T], name: str) -> T:
        """Does ``work`` to its end also when the caller is cancelled, who then does not wait for it."""
        task = self.start(work, name)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(log_error)
            raise

    async def close(self, patience: float) -> None:
        """Waits ``patience`` seconds for what runs, then cancels it."""
        current = asyncio.current_task()
        running = {task for task in self._tasks if task is not current}
        if running:
            _, late = await asyncio.wait(running, timeout=patience)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)


def log_error(task: asyncio.Task[Any]) -> None:
    """For `add_done_callback` on a task that nobody awaits."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s failed: %s", task.get_name(), error, exc_info=error)
