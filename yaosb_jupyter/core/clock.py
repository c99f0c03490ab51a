"""Time: a monotonic clock for intervals, so that suspend and clock changes expire nothing; a wall clock for records."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def monotonic(self) -> float:
        """Seconds that only ever grow."""

    def now(self) -> datetime:
        """The time of day, in UTC."""


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> datetime:
        return datetime.now(UTC)


class Alarm:
    """Wakes the one who waits at a time that others may bring forward."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung = asyncio.Event()
        self._at = 0.0

    def ring(self) -> None:
        self._rung.set()

    def within(self, seconds: float) -> None:
        """Sees to it that the alarm rings in ``seconds`` at the latest."""
        if self._clock.monotonic() + seconds < self._at:
            self._rung.set()

    async def wait(self, seconds: float) -> None:
        """Returns after ``seconds``, or when it was rung since the last wait."""
        self._at = self._clock.monotonic() + seconds
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._rung.wait()
        except TimeoutError:
            pass
        self._rung.clear()
