"""The guests of one engine's containers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from yaosb_jupyter.choices import Status
from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.link.guest import GuestLink
from yaosb_jupyter.link.services import Services
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.environments import Environments
from yaosb_jupyter.tai.runtimes.docker.events import EventHub
from yaosb_jupyter.tai.runtimes.docker.guest import ContainerGuest
from yaosb_jupyter.tai.runtimes.docker.spec import LinkKind

_LISTEN_AGAIN = 1.0


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

    def note(self, runtime_id: str, status: Status) -> None:
        """What the engine tells of a container: one that runs is taken up, the link of one that does not given up."""
        guest = self._guests.get(runtime_id)
        if status is Status.REMOVED:
            self._soon(self.forget(runtime_id))
        elif guest is None:
            if status is Status.RUNNING:
                self._soon(self._find(runtime_id))
        elif status is Status.STOPPED:
            self._soon(guest.ended())
        elif status in (Status.PAUSED, Status.RUNNING):
            guest.paused = status is Status.PAUSED
            if not guest.paused and not guest.is_up and not guest.expected:
                self._soon(self._take_up(guest))

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

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        async def quietly() -> None:
            with suppress(SandboxError):
                await work

        self._engine.in_background(quietly())

    async def _find(self, runtime_id: str) -> None:
        guest = await self.of(runtime_id)
        if guest is not None:
            await guest.find()

    async def _take_up(self, guest: ContainerGuest) -> None:
        """Started by someone else, it waits for its line."""
        await guest.connected()

    async def _follow(self) -> None:
        """For good: when the engine is away, so are all that use this object, which close it."""
        while True:
            with suppress(SandboxError):
                async for event in self._events.listen():
                    if event.runtime_id in self._guests:  # others may be another manager's
                        self.note(event.runtime_id, event.status)
            await asyncio.sleep(_LISTEN_AGAIN)
