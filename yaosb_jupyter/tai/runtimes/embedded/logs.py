"""The output of a main process, taken from its guest as it comes and kept when both have ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.errors import ProtocolError
from yaosb_jupyter.guest import frames
from yaosb_jupyter.link.connection import Connection, RemoteError, Stream
from yaosb_jupyter.types import LogChunk

CAPACITY = 2**20
_CHANNELS = {frames.DATA: ExecChannel.STDOUT, frames.DATA_ERR: ExecChannel.STDERR}


@dataclass(frozen=True, kw_only=True)
class _Piece:
    at: datetime
    chunk: LogChunk


class MainLog:
    """The last MiB; the oldest is dropped beyond."""

    def __init__(self) -> None:
        self._pieces: deque[_Piece] = deque()
        self._size = 0
        self._count = 0
        self._changed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._open = False

    def begin(self) -> None:
        """The sandbox runs: there may be more to come."""
        self._open = True

    def follow(self, connection: Connection) -> None:
        """Begins anew with what a guest tells from the start of its main process."""
        self._pieces.clear()
        self._size = 0
        stream = connection.open("logs", {"follow": True})
        self._following = asyncio.ensure_future(self._take(stream))

    async def finished(self) -> None:
        """Returns when all was taken; the link is not waited for longer than it lives."""
        following, self._following = self._following, None
        if following is not None:
            await asyncio.wait([following], timeout=1.0)
            following.cancel()
            await asyncio.wait([following])
        self._open = False
        self._tell()

    async def _take(self, stream: Stream) -> None:
        with contextlib.suppress(ConnectionError, ProtocolError, RemoteError):
            while (item := await stream.receive()) is not None:
                channel = _CHANNELS.get(item[0])
                if channel is not None:
                    self._add(LogChunk(channel=channel, data=item[1]))

    def _add(self, chunk: LogChunk) -> None:
        self._pieces.append(_Piece(at=datetime.now(UTC), chunk=chunk))
        self._count += 1
        self._size += len(chunk.data)
        while self._size > CAPACITY:
            self._size -= len(self._pieces.popleft().chunk.data)
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def read(self, *, follow: bool, tail: int | None, since: datetime | None) -> AsyncIterator[LogChunk]:
        pieces = [piece for piece in self._pieces if since is None or piece.at >= since]
        chunks = [piece.chunk for piece in pieces]
        position = self._count
        for chunk in chunks if tail is None else _last_lines(chunks, tail):
            yield chunk
        while follow:
            if position == self._count:
                if not self._open:
                    return
                await self._changed.wait()
                continue
            fresh = min(self._count - position, len(self._pieces))
            position = self._count
            for piece in list(self._pieces)[len(self._pieces) - fresh :]:
                yield piece.chunk


def _last_lines(chunks: Sequence[LogChunk], tail: int) -> Sequence[LogChunk]:
    """The last lines of all channels together, in their order."""
    kept: list[LogChunk] = []
    wanted = tail
    for index, chunk in enumerate(reversed(chunks)):
        if wanted <= 0:
            break
        lines = chunk.data.splitlines(keepends=True)
        unfinished = index > 0 and not chunk.data.endswith(b"\n")  # its last line goes on in the chunk after it
        used = lines[-(wanted + unfinished) :] if wanted + unfinished < len(lines) else lines
        kept.append(LogChunk(channel=chunk.channel, data=b"".join(used)))
        wanted -= len(used) - unfinished
    return kept[::-1]
