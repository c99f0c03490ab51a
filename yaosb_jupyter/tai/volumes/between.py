"""Copies from one workspace to another, through this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

from yaosb_jupyter.guest import records
from yaosb_jupyter.guest.packing import MOST_TOLD
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.tai.volumes.paths import path_errors
from yaosb_jupyter.tai.volumes.trees import Report, copied, progress_of
from yaosb_jupyter.types import Copied


async def copy_between(source: Volume, path: str, target: Volume, place: str, progress: Report | None = None) -> Copied:
    """A file or a directory of one volume to ``place`` in another (or the same); see `Volume.unpack`."""
    tally = Tally()

    async def passing() -> AsyncIterator[bytes]:
        async with aclosing(cast(Any, source.pack(path))) as pieces:
            async for piece in pieces:
                with path_errors(path):
                    tally.count(piece)
                if progress is not None:
                    progress(progress_of(tally))
                yield piece

    async with aclosing(cast(Any, passing())) as pieces:
        await target.unpack(place, pieces)
    return copied(tally, place, 0)


class Tally:
    """What a stream of records has told so far."""

    def __init__(self) -> None:
        self._decoder = records.Decoder()
        self._above: list[str] = []
        self.path = ""
        self.files = 0
        self.done = 0
        self.total = 0
        self.skipped: list[str] = []

    def count(self, data: bytes) -> None:
        """Raises `RecordError` for what is none; what it means is checked by those who unpack it."""
        for record in self._decoder.feed(data):
            if record.kind == records.TOTAL:
                self.total = records.decode_total(record.content)
            elif record.kind in (records.FILE, records.MORE):
                self.done += len(record.content)
            if record.kind in (records.FILE, records.ENTER, records.SKIP):
                self.path = "/".join(name for name in (*self._above, record.name) if name)
            if record.kind == records.FILE:
                self.files += 1
            elif record.kind == records.ENTER:
                self._above.append(record.name)
            elif record.kind == records.LEAVE and self._above:
                self._above.pop()
            elif record.kind == records.SKIP and len(self.skipped) < MOST_TOLD:
                self.skipped.append(self.path)
