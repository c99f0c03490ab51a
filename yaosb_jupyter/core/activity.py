"""When a sandbox was last used, on the monotonic clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from yaosb_jupyter.core.clock import Clock


class Activity:
    """Used at moments (`touch`) and over spans (`begin`, `end`): it is *now* while anything is in flight."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._used = clock.monotonic()
        self._in_flight = 0

    @property
    def busy(self) -> bool:
        return self._in_flight > 0

    @property
    def idle(self) -> float:
        """Seconds since the last use; 0 while busy."""
        return 0.0 if self._in_flight else max(0.0, self._clock.monotonic() - self._used)

    def touch(self) -> None:
        self._used = self._clock.monotonic()

    def begin(self) -> None:
        self._in_flight += 1

    def end(self) -> None:
        self._in_flight -= 1
        self.touch()

    @contextmanager
    def span(self) -> Iterator[None]:
        self.begin()
        try:
            yield
        finally:
            self.end()
