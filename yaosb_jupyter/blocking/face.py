"""What the blocking faces have in common."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable
from typing import Any, TypeVar

from yaosb_jupyter.blocking.loop import Calls, Loop

T = TypeVar("T")

_END = object()


class Face:
    """Waits in the calling thread for what happens on the loop. `KeyboardInterrupt` cancels it there first."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def _run(self, work: Callable[[], Awaitable[T]], calls: Calls | None = None) -> T:
        return self._loop.run(work, calls)

    def _iterate(self, source: Callable[[], AsyncIterator[T]]) -> Generator[T]:
        """The items one by one; leaving early closes the source."""
        items = source()
        try:
            while (item := self._run(lambda: anext(items, _END))) is not _END:
                yield item  # type: ignore[misc]
        finally:
            if self._loop.alive:  # else the process ends, and with it the source
                self._loop.finish(lambda: _aclose(items))


async def _aclose(items: AsyncIterator[Any]) -> None:
    if (aclose := getattr(items, "aclose", None)) is not None:
        await aclose()


async def feed(pieces: Iterable[T]) -> AsyncIterator[T]:
    """A blocking iterable for the loop's side: each step is taken in a thread."""
    iterator = iter(pieces)
    while (piece := await asyncio.to_thread(next, iterator, _END)) is not _END:
        yield piece  # type: ignore[misc]
