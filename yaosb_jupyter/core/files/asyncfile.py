"""`AsyncFile`: an open file of a workspace, for coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from typing import IO, Any, Generic, ParamSpec, Self, TypeVar

from yaosb_jupyter.types import Text

P = ParamSpec("P")
T = TypeVar("T")

_LINES = 1 << 16
"""Characters of lines that are fetched together."""


class Threaded:
    """Work for the loop that made this, from a thread that waits; `cancel` ends the waiting."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pending: Future[Any] | None = None
        self._cancelled = False

    def __call__(self, work: Callable[[], Awaitable[T]]) -> T:
        if self._cancelled:
            raise asyncio.CancelledError
        self._pending = pending = asyncio.run_coroutine_threadsafe(_awaited(work), self._loop)
        return pending.result()

    def cancel(self) -> None:
        self._cancelled = True
        if self._pending is not None:
            self._pending.cancel()

    def resume(self) -> None:
        self._cancelled = False


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


class AsyncFile(Generic[Text]):
    """A file of the standard library, its calls made in threads. For ``async with``, whose exception leaves the old
    file where one was to be written; ``async for`` gives lines.
    """

    def __init__(self, file: IO[Text], run: Threaded) -> None:
        self._file: IO[Text] = file
        self._run = run

    async def read(self, size: int = -1) -> Text:
        """The rest, or at most ``size`` characters or bytes of it; empty at the end."""
        return await self._do(self._file.read, size)

    async def readline(self) -> Text:
        return await self._do(self._file.readline)

    async def write(self, data: Text) -> int:
        """Waits while the sandbox does not keep up."""
        return await self._do(self._file.write, data)

    async def flush(self) -> None:
        """Sends what was written so far; it is not seen under the file's name before `close`."""
        await self._do(self._file.flush)

    async def seek(self, offset: int, whence: int = 0) -> int:
        """Of files that are read."""
        return await self._do(self._file.seek, offset, whence)

    async def tell(self) -> int:
        return await self._do(self._file.tell)

    async def close(self) -> None:
        """What was written is there when this returns. Idempotent."""
        await self._do(self._file.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self._do(self._file.__exit__, *exc)

    async def __aiter__(self) -> AsyncIterator[Text]:
        while lines := await self._do(self._file.readlines, _LINES):
            for line in lines:
                yield line

    async def _do(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A call that is cancelled has ended when that is raised."""
        call = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            self._run.cancel()
            await asyncio.wait([call])
            self._run.resume()
            if not call.cancelled():
                call.exception()  # the cancellation is what we tell
            raise
