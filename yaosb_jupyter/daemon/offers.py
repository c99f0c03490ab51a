"""Descriptors that the daemon holds ready for its clients, which claim them by a token."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from yaosb_jupyter.errors import AuthError

PATIENCE = 10.0
"""Seconds within which a client claims what it asked for."""


class Peer(NamedTuple):
    """The process at the other end of a socket, as the system tells: 0 and None for unknown."""

    pid: int
    uid: int | None


class Offer:
    """A descriptor for one process, for once."""

    def __init__(self, descriptor: int, client: Peer) -> None:
        self.descriptor = descriptor
        self.client = client
        self.token = secrets.token_urlsafe(32)
        self._taken = asyncio.Event()

    def take(self) -> None:
        self._taken.set()

    async def taken(self) -> None:
        """Returns when the client has its own copy of the descriptor. Raises `AuthError` when it does not come."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._taken.wait()
        except TimeoutError:
            raise AuthError("a descriptor was not claimed in time", hint="try again") from None


class Offers:
    """All that are open, of all clients. What an offer is of stays its owner's: nothing is closed here."""

    def __init__(self) -> None:
        self._open: dict[str, Offer] = {}

    @contextmanager
    def offer(self, descriptor: int, client: Peer) -> Iterator[Offer]:
        """Offers ``descriptor`` to the process ``client`` until it was taken, `PATIENCE` is over, or this is left."""
        offer = Offer(descriptor, client)
        self._open[offer.token] = offer
        expiry = asyncio.get_running_loop().call_later(PATIENCE, self._open.pop, offer.token, None)
        try:
            yield offer
        finally:
            expiry.cancel()
            self._open.pop(offer.token, None)

    def take(self, token: object, client: Peer) -> int:
        """The descriptor, for once. Raises `AuthError` for whoever it is not for."""
        offer = self._open.get(token) if isinstance(token, str) else None
        if offer is None or offer.client != client:
            raise AuthError("no descriptor is held ready under this token", hint="ask for it again")
        del self._open[offer.token]
        offer.take()
        return offer.descriptor
