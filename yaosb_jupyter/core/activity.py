"""When a sandbox was last used, on the monotonic clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from yaosb_jupyter.core.clock import Clock


class Activity:
    """Used at moments (`touch`) and over spans (`begin`, `end`): it is *now* while anything is in flight.

    The idle time begins when this is made; ``used`` tells whether anything was done since.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock.monotonic()
        self._in_flight = 0
        self.used = False

    @property
    def busy(self) -> bool:
        return self._in_flight > 0

    @property
    def idle(self) -> float:
        """Seconds since the last use; 0 while busy."""
        return 0.0 if self._in_flight else max(0.0, self._clock.monotonic() - self._since)

    def touch(self) -> None:
        self._since = self._clock.monotonic()
        self.used = True

    def begin(self) -> None:
        self.used = True
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
