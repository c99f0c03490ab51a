"""A manager behind a daemon's socket, with the test's own engines and clock at the other end."""

from __future__ import annotations

import asyncio

from yaosb_jupyter.core.clock import Clock
from yaosb_jupyter.core.controller import Controller
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.pool import Opener
from yaosb_jupyter.core.service import Caller
from yaosb_jupyter.daemon.client import RemoteService
from yaosb_jupyter.daemon.control import Control
from yaosb_jupyter.daemon.line import Line
from yaosb_jupyter.daemon.place import Place, make_secret
from yaosb_jupyter.daemon.server import Server
from yaosb_jupyter.link.connection import dial_unix
from yaosb_jupyter.options import CreateOptions
from yaosb_jupyter.settings import Settings


async def through_daemon(settings: Settings, *, opener: Opener, clock: Clock | None = None) -> AsyncManager:
    """As `AsyncManager.open`; closing it ends the daemon's part too."""
    controller = await Controller.open(settings, opener=opener, clock=clock)
    service = controller.for_caller(Caller(owner=settings.owner, admin=True))
    place = Place.of(settings)
    secret = await asyncio.to_thread(make_secret, place)
    server = Server(place.socket, secret, lambda: service, Control())
    await server.open()

    async def close() -> None:
        await server.close("the test ends")
        await controller.close()

    line = Line(lambda: dial_unix(place.socket, {"secret": secret}))
    return AsyncManager(RemoteService(line, CreateOptions()), on_close=close)
