"""The daemon's end of the requests during which something flows: commands, files, logs, lists, progress."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

from yaosb_jupyter.core.service import Progress
from yaosb_jupyter.daemon.held import KINDS
from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.guest import frames
from yaosb_jupyter.link.stream import Stream
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.types import LogChunk, PullProgress
from yaosb_jupyter.wire.codec import to_json

T = TypeVar("T")

_LINGER = 5.0
_BATCH = 100
"""Items a message: the largest, a sandbox with many labels, still fit."""


async def send_items(stream: Stream, items: Sequence[Any]) -> None:
    """A list may be longer than one frame holds."""
    size = _BATCH
    start = 0
    while start < len(items):
        batch = {"items": to_json(list(items[start : start + size]))}
        try:
            await stream.send_message(batch)
        except frames.FrameError:
            if size == 1:
                raise
            size = max(1, size // 10)
            continue
        start += size


async def carry(stream: Stream, connection: ByteStream) -> None:
    """Carries both ways of a connection until both have ended, or the client has gone."""
    await stream.send_message({"connected": True})
    up = asyncio.create_task(_carry_up(stream, connection))
    try:
        while data := await connection.receive():
            await stream.send(data)
        await stream.send_eof()
        await asyncio.shield(up)
    except asyncio.CancelledError:
        # The client has gone. What it sent before still arrives; it said EOF behind it.
        await asyncio.wait([up], timeout=_LINGER)
        raise
    finally:
        up.cancel()


async def _carry_up(stream: Stream, connection: ByteStream) -> None:
    with contextlib.suppress(SandboxError, ConnectionError):
        async for data in received(stream):
            await connection.send(data)
        await connection.send_eof()


async def received(stream: Stream) -> AsyncIterator[bytes]:
    """The data that the client sends, until its EOF. Raises `ConnectionError` where that never comes."""
    while (item := await stream.receive()) is not None:
        kind, payload = item
        if kind == frames.EOF:
            return
        if kind == frames.DATA:
            yield payload
    raise ConnectionResetError("the stream ended before its data")


async def send_data(stream: Stream, pieces: AsyncIterator[bytes]) -> None:
    async with contextlib.aclosing(cast(Any, pieces)):
        async for data in pieces:
            await stream.send(data)


async def send_logs(stream: Stream, chunks: AsyncIterator[LogChunk]) -> None:
    async for chunk in chunks:
        await stream.send(chunk.data, KINDS[chunk.channel])


async def with_progress(stream: Stream, work: Callable[[Progress], Awaitable[T]]) -> T:
    """Does ``work`` and tells its progress; of a layer that goes on faster than the client reads, the latest.

    Once the work is done its result is returned whatever comes: a client that cancels meanwhile undoes it.
    """
    latest: dict[str, PullProgress] = {}
    news = asyncio.Event()

    def note(step: PullProgress) -> None:
        latest[step.layer] = step
        news.set()

    async def send_latest() -> None:
        while latest:
            await stream.send_message({"progress": to_json(latest.pop(next(iter(latest))))})

    async def tell() -> None:
        while True:
            await news.wait()
            news.clear()
            await send_latest()

    teller = asyncio.create_task(tell())
    try:
        result = await work(note)
    finally:
        teller.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await send_latest()
    return result
