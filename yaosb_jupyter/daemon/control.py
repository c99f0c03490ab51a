"""The daemon's own end: who uses it, and when it stops."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from yaosb_jupyter.daemon.held import HeldCommands
from yaosb_jupyter.daemon.offers import Offers
from yaosb_jupyter.link.connection import Connection
from yaosb_jupyter.version import __version__


@dataclass(frozen=True, kw_only=True)
class Status:
    """``clients`` connections; ``serving`` requests under way."""

    pid: int
    version: str
    clients: int
    serving: int


class Control:
    """Knows the clients' connections and requests; `stopped` is set when the daemon shall end."""

    def __init__(self) -> None:
        self.stopped = asyncio.Event()
        self.connections: set[Connection] = set()
        self.held = HeldCommands()
        self.offers = Offers()
        self._serving = 0
        self._retiring = False

    @contextmanager
    def serving(self) -> Iterator[None]:
        """While one request is served."""
        self._serving += 1
        try:
            yield
        finally:
            self._serving -= 1
            if self._retiring and self._serving == 0:
                self.stopped.set()

    def stop(self, *, when_idle: bool) -> bool:
        """Whether it stops now; the request that asks does not count as use."""
        if when_idle and self._serving > 1:
            self._retiring = True
            return False
        self.stopped.set()
        return True

    def status(self) -> Status:
        return Status(pid=os.getpid(), version=__version__, clients=len(self.connections), serving=self._serving)
