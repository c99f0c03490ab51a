"""Capabilities: who holds the path reaches one port of one sandbox, for a while."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import h11

from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.proxy.client import Client
from yaosb_jupyter.tai.proxy.headers import Mount

LIFETIME = 12 * 3600.0
"""Seconds that a path lives after it was last asked for."""
TOKEN_BYTES = 32


Serve = Callable[[Client, h11.Request, bytes, "Target", Mount], Awaitable[None]]
"""Answers one request at a path."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where a ticket leads, fixed when it is made: a ``port`` of the sandbox ``uid``, ``name`` to people.

    ``serve`` answers the requests, where they are not for what listens there itself.
    """

    uid: str
    name: str
    port: int
    dial: Callable[[], Awaitable[ByteStream]]
    serve: Serve | None = None

    @property
    def place(self) -> tuple[object, ...]:
        """What it leads to; asked for again, the ticket is the same."""
        return (self.uid, self.port, self.serve)


@dataclass(eq=False, kw_only=True)
class Ticket:
    """``users`` are the connections that go on by it: they end with it, not when it expires."""

    token: str
    target: Target
    expires: float
    users: set[asyncio.Task[None]] = field(default_factory=set)


class Tickets:
    """One for each sandbox and port, on the given monotonic clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tickets: dict[str, Ticket] = {}

    def __len__(self) -> int:
        return len(self._tickets)

    def issue(self, target: Target) -> Ticket:
        """The ticket of a sandbox's port, its time begun anew; made where there is none."""
        self._drop_expired()
        found = (each for each in self._tickets.values() if each.target.place == target.place)
        ticket = next(found, None) or Ticket(token=secrets.token_urlsafe(TOKEN_BYTES), target=target, expires=0.0)
        ticket.expires = self._clock() + LIFETIME
        return self._tickets.setdefault(ticket.token, ticket)

    def find(self, token: str) -> Ticket | None:
        """The ticket, if it still is one."""
        self._drop_expired()
        return self._tickets.get(token)

    def revoke(self, uid: str) -> None:
        """Takes a sandbox's tickets back, and ends the connections that use them."""
        for ticket in [each for each in self._tickets.values() if each.target.uid == uid]:
            del self._tickets[ticket.token]
            for user in ticket.users:
                user.cancel()

    def _drop_expired(self) -> None:
        now = self._clock()
        for ticket in [each for each in self._tickets.values() if each.expires <= now]:
            del self._tickets[ticket.token]
