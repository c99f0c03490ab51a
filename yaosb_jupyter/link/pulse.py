"""Noticing that the other side of a link has fallen silent."""

from __future__ import annotations

import asyncio
import logging

from yaosb_jupyter.link.connection import Connection
from yaosb_jupyter.link.patience import Resting

log = logging.getLogger(__name__)

EVERY = 15.0
PATIENCE = 15.0
"""How long an answer may take: a sandbox with a small share of the CPU, or short of memory, is slow."""


async def watch(connection: Connection, *, resting: Resting, sandbox: str) -> None:
    """Asks for a sign of life until the connection ends, and ends it where none comes.

    While ``resting`` none is expected.
    """
    while not connection.closed:
        await asyncio.sleep(EVERY)
        if resting():
            continue
        try:
            async with asyncio.timeout(PATIENCE):
                await connection.ping()
        except ConnectionError:
            return
        except TimeoutError:
            if not resting():
                log.warning("the guest of %s is silent: its link is dropped", sandbox)
                await connection.close("no sign of life")
