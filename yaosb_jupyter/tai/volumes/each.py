"""Trees that come, written file by file: for volumes that have no better way."""

from __future__ import annotations

import posixpath
import time
from abc import abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from dataclasses import dataclass

from yaosb_jupyter.guest import records
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.tai.volumes.paths import path_errors
from yaosb_jupyter.types import FileInfo

SMALL = 1 << 18
"""Bytes of a file that is held until it is written together with others."""
MOST_TOGETHER = 100
_MOST_HELD = 1 << 22


@dataclass(frozen=True, kw_only=True)
class SmallFile:
    """``mtime`` in nanoseconds since 1970."""

    name: str
    content: bytes
    mode: int
    mtime: int


class FileByFile(Volume):
    """A volume that unpacks trees by its other methods."""

    @abstractmethod
    async def put(self, path: str, content: AsyncIterable[bytes], *, mode: int | None, mtime: int) -> FileInfo:
        """`write`, with the file's time in nanoseconds since 1970."""

    @abstractmethod
    async def put_together(self, directory: str, files: Sequence[SmallFile]) -> None:
        """`put` for some files of one directory, at most `MOST_TOGETHER`."""

    @abstractmethod
    async def put_directory(self, path: str, *, mode: int) -> None:
        """`mkdir`; one that is made gets the mode, for its owner at least so that it can be filled."""

    async def write(self, path: str, content: AsyncIterable[bytes], *, mode: int | None = None) -> FileInfo:
        return await self.put(path, content, mode=mode, mtime=time.time_ns())

    async def unpack(self, target: str, records: AsyncIterable[bytes]) -> None:
        with path_errors(target):
            await _Unpacking(self, target, records).run()


class _Unpacking:
    def __init__(self, volume: FileByFile, target: str, stream: AsyncIterable[bytes]) -> None:
        self._volume = volume
        self._records = _decoded(stream)
        self._names: list[str] = []
        self._held: list[SmallFile] = []
        self._target = target

    async def run(self) -> None:
        record = await self._next()
        while record.kind != records.END:
            if record.kind == records.FILE:
                record = await self._file(record)
                continue
            await self._write_held()
            if record.kind == records.ENTER:
                self._names.append(record.name)
                await self._volume.put_directory(self._path(), mode=record.mode)
            elif record.kind == records.LEAVE and self._names:
                self._names.pop()
            elif record.kind not in (records.TOTAL, records.SKIP):
                raise records.RecordError(f"a record of kind {record.kind} where it cannot be")
            record = await self._next()
        await self._write_held()

    async def _file(self, record: records.Record) -> records.Record:
        """Writes it, or holds it to be written with others; the record after it."""
        begun = bytes(record.content)
        while record.name and len(begun) <= SMALL:
            more = await self._next()
            if more.kind != records.MORE:
                self._held.append(SmallFile(name=record.name, content=begun, mode=record.mode, mtime=record.mtime))
                if len(self._held) == MOST_TOGETHER or sum(len(file.content) for file in self._held) > _MOST_HELD:
                    await self._write_held()
                return more
            begun += more.content
        after: list[records.Record] = []

        async def content() -> AsyncIterator[bytes]:
            yield begun
            while (more := await self._next()).kind == records.MORE:
                yield bytes(more.content)
            after.append(more)

        await self._volume.put(self._path(record.name), content(), mode=record.mode, mtime=record.mtime)
        return after[0]

    async def _write_held(self) -> None:
        held, self._held = self._held, []
        if held:
            await self._volume.put_together(self._path(), held)

    def _path(self, name: str = "") -> str:
        """The names of top and of a file that is the top are empty."""
        return posixpath.join(self._target, *filter(None, (*self._names, name)))

    async def _next(self) -> records.Record:
        record = await anext(self._records, None)
        if record is None:
            raise records.RecordError("no end")
        return record


async def _decoded(stream: AsyncIterable[bytes]) -> AsyncIterator[records.Record]:
    decoder = records.Decoder()
    async for data in stream:
        for record in decoder.feed(data):
            yield record
