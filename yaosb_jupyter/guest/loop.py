"""The guest's event loop: file descriptors, timers and signals, on one thread."""

from __future__ import annotations

import heapq
import os
import selectors
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, List, Optional, Tuple

    Callback = Callable[[], None]

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE

LONGEST_WAIT = 3600.0
"""What no selector refuses."""

FEW_TIMERS = 256

REST = 1.0
"""Seconds without anything ready, after which there is time for tidying."""


class Timer:
    """A callback that is due at ``when`` (monotonic seconds), unless cancelled."""

    __slots__ = ("callback", "when")

    def __init__(self, when: float, callback: Callback) -> None:
        self.when = when
        self.callback: Optional[Callback] = callback

    def cancel(self) -> None:
        self.callback = None


class Loop:
    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: List[Tuple[float, int, Timer]] = []
        self._sequence = 0
        self._crowded = FEW_TIMERS
        self._signals: Dict[int, Callback] = {}
        self._exit_code: Optional[int] = None
        self._at_rest: Callback = lambda: None
        self._rest_due: Optional[float] = None
        self._wakeup, wakeup_end = os.pipe()
        os.set_blocking(self._wakeup, False)
        os.set_blocking(wakeup_end, False)
        signal.set_wakeup_fd(wakeup_end, warn_on_full_buffer=False)
        self.watch(self._wakeup, READ, self._signalled)

    def watch(self, fd: int, events: int, callback: Callback) -> None:
        """Calls ``callback`` whenever ``fd`` is ready; replaces what was asked for before."""
        try:
            self._selector.modify(fd, events, callback)
        except KeyError:
            self._selector.register(fd, events, callback)

    def unwatch(self, fd: int) -> None:
        try:
            self._selector.unregister(fd)
        except KeyError:
            pass  # not watched

    def later(self, delay: float, callback: Callback) -> Timer:
        if len(self._timers) > self._crowded:
            self._sweep_timers()
        timer = Timer(time.monotonic() + delay, callback)
        self._sequence += 1
        heapq.heappush(self._timers, (timer.when, self._sequence, timer))
        return timer

    def _sweep_timers(self) -> None:
        """Those that were cancelled may be due in a year."""
        self._timers = [one for one in self._timers if one[2].callback is not None]
        heapq.heapify(self._timers)
        self._crowded = 2 * len(self._timers) + FEW_TIMERS

    def on_signal(self, signum: int, callback: Callback) -> None:
        self._signals[signum] = callback
        signal.signal(signum, lambda *_: None)  # the wakeup descriptor tells

    def at_rest(self, callback: Callback) -> None:
        """Calls it once whenever nothing has been ready for `REST` seconds."""
        self._at_rest = callback

    def stop(self, code: int) -> None:
        self._exit_code = code

    def run(self) -> int:
        """Until `stop`; returns its code."""
        while self._exit_code is None:
            ready = self._selector.select(self._patience())
            if ready:
                self._rest_due = time.monotonic() + REST
            for key, _ in ready:
                # A callback before this one may have closed the descriptor.
                if self._selector.get_map().get(key.fd) is key:
                    self._call(key.data)
            self._run_timers()
        return self._exit_code

    def _patience(self) -> Optional[float]:
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        due = [when for when in (self._rest_due, self._timers[0][0] if self._timers else None) if when is not None]
        return min(max(0.0, min(due) - time.monotonic()), LONGEST_WAIT) if due else None

    def _run_timers(self) -> None:
        now = time.monotonic()
        if self._rest_due is not None and self._rest_due <= now:
            self._rest_due = None
            self._call(self._at_rest)
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if timer.callback is not None:
                self._call(timer.callback)

    def _signalled(self) -> None:
        for signum in set(os.read(self._wakeup, 4096)):
            callback = self._signals.get(signum)
            if callback is not None:
                self._call(callback)

    def _call(self, callback: Callback) -> None:
        """A fault in the service of one stream must not end the others."""
        try:
            callback()
        except Exception:
            sys.excepthook(*sys.exc_info())
