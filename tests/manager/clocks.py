"""A clock that tests move."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class ManualClock:
    """``wall`` may be set to anything: it is no part of intervals."""

    def __init__(self) -> None:
        self.wall = datetime(2026, 1, 1, tzinfo=UTC)
        self._monotonic = 1000.0

    def monotonic(self) -> float:
        return self._monotonic

    def now(self) -> datetime:
        return self.wall

    def advance(self, seconds: float) -> None:
        self._monotonic += seconds
        self.wall += timedelta(seconds=seconds)
