"""Work that a coroutine waits for: blocking, or to be done to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


async def in_thread(function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Like `asyncio.to_thread`, but a cancelled call ends only with its thread.

    So what the function uses may be closed then, and what it made is where it was put. For work that is short.
    """
    return await to_the_end(asyncio.to_thread(function, *args, **kwargs))


async def to_the_end(work: Coroutine[Any, Any, _R]) -> _R:
    """Waits for short work that is done even where we are cancelled; the cancellation is raised then."""
    running = asyncio.ensure_future(work)
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
