"""Stopping the daemon of a data directory."""

from __future__ import annotations

import asyncio
import time

from yaosb_jupyter.core.lock import lock_owner
from yaosb_jupyter.daemon.line import told
from yaosb_jupyter.daemon.place import Place
from yaosb_jupyter.daemon.requests import DaemonStop
from yaosb_jupyter.daemon.start import find
from yaosb_jupyter.errors import NotAvailableError

_PATIENCE = 60.0


async def stop_daemon(place: Place) -> int | None:
    """Returns the pid of the daemon that was stopped, once it has let go of the data directory; None where none runs.

    Raises `NotAvailableError` where it takes too long.
    """
    connection = await find(place)
    if connection is None:
        return None
    pid = int((await connection.ready()).get("pid", 0))
    request = DaemonStop()
    with told(request):
        await connection.call(request.op, request.arguments())
    await connection.close()
    deadline = time.monotonic() + _PATIENCE
    while await asyncio.to_thread(_owner, place) == pid:
        if time.monotonic() > deadline:
            raise NotAvailableError(f"the daemon (process {pid}) does not end", hint=f"see {place.log}")
        await asyncio.sleep(0.02)  # a lock can be tried, not awaited
    return pid


def _owner(place: Place) -> int | None:
    owner = lock_owner(place.data_dir)
    return None if owner is None else owner.pid
