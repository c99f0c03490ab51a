"""A file of a workspace that is read here and there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import cast

from yaosb_jupyter.errors import SandboxError

_LET_GO = 10.0
"""Seconds after which a file that nobody reads is no longer held open: being open is not use of its sandbox."""

Stream = Callable[[int], AsyncIterator[bytes]]


class Reader:
    """Reads from ``position`` on. ``stream`` gives the content from an offset.

    One stream serves all reads that follow each other, so they see one file, should it be replaced meanwhile. After a
    jump, or a pause of 10 s, it is the file that is there then. One read at a time; `let_go` from any thread.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._loop = asyncio.get_running_loop()
        self._pieces: AsyncGenerator[bytes] | None = None
        self._next = 0
        self._rest = memoryview(b"")
        self._timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self.position = 0

    async def open(self) -> None:
        """Raises what keeps the file from being read."""
        await self._fill()

    async def read(self, size: int) -> memoryview:
        """The next bytes, at most ``size``; none at the end."""
        await self._fill()
        data, self._rest = self._rest[:size], self._rest[size:]
        self.position = self._next = self.position + len(data)
        return data

    def let_go(self) -> None:
        """Closes the stream soon. A later read opens another."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._close)

    async def _fill(self) -> None:
        """Sees to it that there is some of what comes next, unless that is the end."""
        if self._timer is not None:
            self._timer.cancel()
        if self._pieces is None or self._next != self.position:
            self._close()
            self._pieces = cast("AsyncGenerator[bytes]", self._stream(self.position))
            self._next = self.position
        try:
            if not self._rest:
                self._rest = memoryview(await anext(self._pieces))
            self._timer = self._loop.call_later(_LET_GO, self._close)
        except StopAsyncIteration:
            self._close()
        except BaseException:
            self._close()
            raise

    def _close(self) -> None:
        pieces, self._pieces, self._rest = self._pieces, None, memoryview(b"")
        if pieces is not None:
            task = self._loop.create_task(_closed(pieces))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


async def _closed(pieces: AsyncGenerator[bytes]) -> None:
    with contextlib.suppress(SandboxError):  # whoever read has seen it
        await pieces.aclose()
