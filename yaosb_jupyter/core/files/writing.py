"""A file of a workspace that is written piece by piece, and takes its name when it is whole."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any

_AHEAD = 2
"""Pieces that are taken before the sandbox has them."""


class Writer:
    """``write`` replaces the file by what it is given. It is begun at once, and in flight till `close` or `abandon`."""

    def __init__(self, write: Callable[[AsyncIterable[bytes]], Awaitable[object]], position: int = 0) -> None:
        self._loop = asyncio.get_running_loop()
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue(_AHEAD)
        self._task: asyncio.Future[object] = asyncio.ensure_future(write(self._content()))
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())  # whoever writes is told
        self.position = position

    async def write(self, data: bytes) -> None:
        """Waits while the sandbox does not keep up. Raises what keeps the file from being written."""
        await self._put(data)
        self.position += len(data)

    async def close(self) -> None:
        """The file is there when this returns; cancelled, the old one stays."""
        await self._put(None)
        await self._task

    def abandon(self) -> None:
        """Leaves the old file as it is. Idempotent, from any thread; `ended` waits for it."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)

    async def ended(self) -> None:
        """Returns when nothing more is done."""
        await asyncio.wait([self._task])

    async def _put(self, piece: bytes | None) -> None:
        put: asyncio.Task[Any] = asyncio.ensure_future(self._pieces.put(piece))
        try:
            await asyncio.wait([put, self._task], return_when=asyncio.FIRST_COMPLETED)
        finally:
            put.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await put
        if self._task.done():
            await self._task

    async def _content(self) -> AsyncIterator[bytes]:
        while (piece := await self._pieces.get()) is not None:
            yield piece
