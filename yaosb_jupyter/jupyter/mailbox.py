"""From a coroutine on a loop to the thread that waits for it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """Carries items in order. The sender of weighty items waits while ``limit`` of weight is not taken."""

    def __init__(self, limit: int = 2**20) -> None:
        self._limit = limit
        self._items: deque[T] = deque()
        self._weight = 0
        self._closed = False
        self._changed = threading.Condition()
        self._waiting: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def post(self, item: T, weight: int = 0) -> None:
        """Adds an item, from any thread, without waiting."""
        with self._changed:
            self._items.append(item)
            self._weight += weight
            self._changed.notify_all()

    async def put(self, item: T, weight: int) -> None:
        """Adds an item once there is room."""
        while not self._has_room():
            event = asyncio.Event()
            with self._changed:
                self._waiting = (asyncio.get_running_loop(), event)
            if not self._has_room():  # taken between the two looks
                await event.wait()
        self.post(item, weight)

    def close(self) -> None:
        """No more items; `take` gives what is left, then None."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def take(self, not_before: float = 0.0, linger: float = 0.0, timeout: float | None = None) -> list[T] | None:
        """All items there are, at least one; None at the end; ``[]`` after ``timeout`` seconds.

        Until the monotonic clock's ``not_before``, and for ``linger`` seconds after the first one, more are collected,
        unless the end or the limit is reached.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._closed, timeout)
            pause = max(not_before - time.monotonic(), linger)
            if self._items and pause > 0:
                self._changed.wait_for(lambda: self._closed or self._weight >= self._limit, pause)
            items = list(self._items)
            self._items.clear()
            self._weight = 0
            waiting, self._waiting = self._waiting, None
            ended = self._closed and not items
        if waiting is not None:
            loop, event = waiting
            loop.call_soon_threadsafe(event.set)
        return None if ended else items

    def _has_room(self) -> bool:
        with self._changed:
            return self._weight < self._limit
