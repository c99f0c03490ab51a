"""Engines are given so long to answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from yaosb_jupyter.errors import RuntimeUnavailableError

CONNECT = 12.0  # one engine that does not answer, and another runtime in its place, are both in it
ASK = 30.0  # inspect, list, stats
CHANGE = 120.0  # create, start, remove; stop on top of its own grace


@asynccontextmanager
async def within(seconds: float, what: str, *, pool: str, sandbox: str | None = None) -> AsyncIterator[None]:
    """Raises `RuntimeUnavailableError` where the body takes longer than ``seconds``."""
    scope = asyncio.timeout(seconds)
    try:
        async with scope:
            yield
    except TimeoutError as error:
        if not scope.expired():
            raise
        raise RuntimeUnavailableError(
            f"the engine did not {what} within {seconds:g} s",
            sandbox=sandbox,
            pool=pool,
            hint="see whether the engine answers; `yaosb doctor` tells",
        ) from error
