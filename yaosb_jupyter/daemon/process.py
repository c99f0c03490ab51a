"""The daemon's life: it owns the data directory, serves clients, and ends when it is told to or is of no more use."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable
from functools import partial

from yaosb_jupyter.core.controller import Controller
from yaosb_jupyter.core.lock import lock_owner
from yaosb_jupyter.core.pool import Opener
from yaosb_jupyter.core.service import Caller, Service
from yaosb_jupyter.daemon.control import Control
from yaosb_jupyter.daemon.fingerprint import fingerprint
from yaosb_jupyter.daemon.place import Facts, Place, make_secret, prepare, read_facts, write_facts
from yaosb_jupyter.daemon.server import Server
from yaosb_jupyter.errors import DataDirectoryBusyError
from yaosb_jupyter.settings import Settings
from yaosb_jupyter.tai.client import open_host
from yaosb_jupyter.types import ListFilter
from yaosb_jupyter.version import __version__

log = logging.getLogger(__name__)

_HANDOVER_PATIENCE = 60.0
_LOOKS = 10
"""How often in one idle period the daemon looks whether it is idle."""


async def run(settings: Settings, *, idle_exit: float, ready: Callable[[], None], opener: Opener | None = None) -> None:
    """Serves until SIGTERM, SIGINT, a client's request or ``idle_exit`` seconds of no use (0: never).

    ``ready`` is called once clients can connect. Raises what keeps the manager from being opened.
    """
    place = Place.of(settings)
    await asyncio.to_thread(prepare, place)
    secret = await asyncio.to_thread(make_secret, place)
    control = Control()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, control.stopped.set)
    opener = opener or partial(open_host, state_dir=settings.runtimes_dir)
    controller = await _open(settings, place, opener, control)
    if controller is None:
        return
    service = controller.for_caller(Caller(owner=settings.owner, admin=True))
    server = Server(place.socket, secret, lambda: service, control)
    try:
        await server.open()
        facts = Facts(
            pid=os.getpid(),
            socket=str(place.socket),
            version=__version__,
            fingerprint=fingerprint(settings, os.environ),
            stays=not idle_exit,
        )
        await asyncio.to_thread(write_facts, place, facts)
        log.info("serving %s on %s, version %s", settings.data_dir, place.socket, __version__)
        ready()
        idle = asyncio.create_task(_stop_when_idle(service, control, idle_exit))
        try:
            await control.stopped.wait()
        finally:
            idle.cancel()
            await asyncio.gather(idle, return_exceptions=True)
    finally:
        log.info("stopping")
        await server.close("the daemon stops")
        await controller.close()
        log.info("stopped")


async def _open(settings: Settings, place: Place, opener: Opener, control: Control) -> Controller | None:
    """The controller, once a daemon that is about to end has let go; None where this one is told to end meanwhile."""
    deadline = time.monotonic() + _HANDOVER_PATIENCE
    while not control.stopped.is_set():
        try:
            return await Controller.open(settings, opener=opener)
        except DataDirectoryBusyError:
            if time.monotonic() > deadline or not await asyncio.to_thread(_daemon_is_ending, place):
                raise
        await asyncio.sleep(0.05)  # a lock can be tried, not awaited
    return None


def _daemon_is_ending(place: Place) -> bool:
    """Whether the lock's owner is a daemon; nobody would start another one if it still served."""
    facts = read_facts(place)
    owner = lock_owner(place.data_dir)
    # An owner of None is one that has just let go, or has not yet written itself down.
    return owner is None or (facts is not None and facts.pid == owner.pid)


async def _stop_when_idle(service: Service, control: Control, idle_exit: float) -> None:
    """Without clients and without sandboxes for ``idle_exit`` seconds."""
    if not idle_exit:
        return
    used = time.monotonic()
    while time.monotonic() - used < idle_exit:
        await asyncio.sleep(idle_exit / _LOOKS)
        if control.connections or await service.list(ListFilter()):
            used = time.monotonic()
    log.info("nothing to do for %g s", idle_exit)
    control.stopped.set()
