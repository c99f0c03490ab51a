"""Waiting for conditions, not for time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from yaosb_jupyter import AsyncManager


async def until(condition: Callable[[], Awaitable[object]], within: float = 10.0) -> None:
    """Returns when ``condition`` gives something true; fails after ``within`` seconds."""
    async with asyncio.timeout(within):
        while not await condition():  # noqa: ASYNC110 - engines give no event to wait for
            await asyncio.sleep(0.02)


async def is_empty(manager: AsyncManager) -> bool:
    return not await manager.list()
