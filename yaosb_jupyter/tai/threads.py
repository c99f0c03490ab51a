"""Blocking work for coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


async def in_thread(function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Like `asyncio.to_thread`, but a cancelled call ends only with its thread.

    So what the function uses may be closed then, and what it made is where it was put. For work that is short.
    """
    running = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            try:
                await asyncio.wait([running])
            except asyncio.CancelledError:
                continue  # told already
        if not running.cancelled():
            running.exception()  # retrieved: the cancellation is what we tell
        raise
