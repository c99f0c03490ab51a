"""The guests of one engine's containers."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.link.guest import GuestLink
from yaosb_jupyter.link.services import Services
from yaosb_jupyter.tai.runtimes.base import EnvironmentEvent
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.environments import Environments
from yaosb_jupyter.tai.runtimes.docker.events import EventHub
from yaosb_jupyter.tai.runtimes.docker.guest import ContainerGuest
from yaosb_jupyter.tai.runtimes.docker.spec import LinkKind
from yaosb_jupyter.types import Status


class Guests:
    """By container; those that run are found again when they are first heard of."""

    def __init__(self, engine: Engine, environments: Environments, events: EventHub, services: Services) -> None:
        self._engine = engine
        self._environments = environments
        self._events = events
        self._services = services
        self._guests: dict[str, ContainerGuest] = {}
        self._following: asyncio.Task[None] | None = None

    def open(self) -> None:
        self._following = asyncio.create_task(self._follow())

    async def of(self, runtime_id: str) -> ContainerGuest | None:
        """None where the container has none. Raises `NotFoundError`."""
        if runtime_id not in self._guests:
            facts = await self._environments.get(runtime_id)
            if facts.link is LinkKind.ENGINE:
                return None
            self._guests.setdefault(runtime_id, ContainerGuest(self._engine, runtime_id, facts, self._services))
        return self._guests[runtime_id]

    async def link(self, runtime_id: str) -> GuestLink | None:
        """The link to run things by; None where that is the engine's part. Raises as `ContainerGuest.connected`."""
        guest = await self.of(runtime_id)
        return None if guest is None else await guest.connected()

    def link_in_reach(self, runtime_id: str) -> GuestLink | None:
        """The link where it is up, without waiting for it."""
        guest = self._guests.get(runtime_id)
        return guest.link_now if guest is not None else None

    def find_soon(self, runtime_id: str) -> None:
        """Takes up the guest of a container that runs."""
        if runtime_id not in self._guests:
            self._engine.in_background(self._find(runtime_id))

    async def forget(self, runtime_id: str) -> None:
        guest = self._guests.pop(runtime_id, None)
        if guest is not None:
            await guest.release()

    async def close(self) -> None:
        """Lets go of all; they go on."""
        following, self._following = self._following, None
        if following is not None:
            following.cancel()
            await asyncio.wait([following])
        guests = list(self._guests.values())
        self._guests.clear()
        await asyncio.gather(*(guest.release() for guest in guests))

    async def _find(self, runtime_id: str) -> None:
        with suppress(SandboxError):
            guest = await self.of(runtime_id)
            if guest is not None:
                await guest.find()

    async def _follow(self) -> None:
        """Until the engine goes away, and with it this object."""
        with suppress(SandboxError):
            async for event in self._events.listen():
                self._heed(event)

    def _heed(self, event: EnvironmentEvent) -> None:
        guest = self._guests.get(event.runtime_id)
        if guest is None:
            return
        if event.status is Status.REMOVED:
            self._engine.in_background(self.forget(event.runtime_id))
        elif event.status in (Status.PAUSED, Status.RUNNING):
            guest.paused = event.status is Status.PAUSED
            if not guest.paused and not guest.expected:
                self._engine.in_background(self._take_up(guest))

    async def _take_up(self, guest: ContainerGuest) -> None:
        """Started by someone else, it waits for its line."""
        with suppress(SandboxError):
            await guest.connected()
