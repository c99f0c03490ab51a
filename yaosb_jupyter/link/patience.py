"""Waiting for a guest that may rest: one that stands still, as the engine says, is late for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

Resting = Callable[[], bool]
"""Whether the guest stands still at this moment."""


def never() -> bool:
    """Of a guest that nobody can pause."""
    return False


@asynccontextmanager
async def awake(seconds: float | None, resting: Resting) -> AsyncIterator[None]:
    """As `asyncio.timeout`, but who rests when the time is over has it once more."""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle | None = None
    async with asyncio.timeout(None) as bound:

        def due() -> None:
            if resting():
                begin()
            else:
                bound.reschedule(loop.time())

        def begin() -> None:
            nonlocal timer
            timer = None if seconds is None else loop.call_later(seconds, due)

        begin()
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
