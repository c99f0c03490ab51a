"""The asynchronous way in: a manager over the daemon."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Unpack

from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.daemon.client import RemoteService
from yaosb_jupyter.daemon.line import Line
from yaosb_jupyter.daemon.place import Place
from yaosb_jupyter.daemon.start import reach
from yaosb_jupyter.options import CreateFields, CreateOptions
from yaosb_jupyter.settings import load_settings


async def connect_async(data_dir: Path | str | None = None, **defaults: Unpack[CreateFields]) -> AsyncManager:
    """A manager over the daemon of a data directory (default: ``YAO_DATA_DIR``, else the user's), started if need be.

    ``defaults`` are for each ``create`` of this manager; all else is configured by the daemon's environment and file.
    Close it, or use it as ``async with await connect_async() as manager``. Raises `NotAvailableError` and what keeps
    the daemon from starting, `AuthError`, `InvalidOptionError`.
    """
    options = CreateOptions.of(**defaults)
    place = Place.of(await asyncio.to_thread(load_settings, data_dir=data_dir))
    line = Line(lambda: reach(place))
    await line.connect()
    return AsyncManager(RemoteService(line, options))
