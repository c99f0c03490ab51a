"""Trees file by file, for volumes that have no better way."""

from __future__ import annotations

import posixpath
import stat
import time
from abc import abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import aclosing
from hashlib import sha256
from typing import Any, cast

from yaosb_jupyter.guest import records
from yaosb_jupyter.guest.manifest import Stamp, encode_stamp
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.tai.volumes.comparison import stamps_of
from yaosb_jupyter.tai.volumes.paths import path_errors
from yaosb_jupyter.types import FileInfo


class FileByFile(Volume):
    """A volume whose trees are copied by its other methods."""

    @abstractmethod
    async def put(self, path: str, content: AsyncIterable[bytes], *, mode: int | None, mtime: int) -> FileInfo:
        """`write`, with the file's time in nanoseconds since 1970."""

    async def put_directory(self, path: str, *, mode: int) -> None:  # noqa: ARG002 - for those that can
        """`mkdir`; one that is made gets the mode, for its owner at least so that it can be filled."""
        await self.mkdir(path)

    async def write(self, path: str, content: AsyncIterable[bytes], *, mode: int | None = None) -> FileInfo:
        return await self.put(path, content, mode=mode, mtime=time.time_ns())

    async def manifest(self, source: str, *, checksum: bool = False) -> AsyncIterator[bytes]:  # noqa: ARG002
        """Always with digests: the times that such a volume keeps and tells are not exact."""
        top = await self.stat(source)
        if top.is_dir:
            yield records.encode(records.ENTER)
        async for path, info in self._found(source, top):
            name = posixpath.basename(path)
            if info is None:
                yield records.encode(records.LEAVE)
            elif info.is_dir:
                yield records.encode(records.ENTER, name)
            elif stat.S_ISREG(info.mode):
                digest = await _digest(self.read(_join(source, path)))
                yield encode_stamp(name, _stamp(info)._replace(digest=digest))

    async def pack(self, source: str, there: AsyncIterable[bytes] | None = None) -> AsyncIterator[bytes]:
        """Files are held against the times in ``there``, which `manifest` told."""
        stamps = {} if there is None else await stamps_of(there, source)
        top = await self.stat(source)
        found = [item async for item in self._found(source, top) if not _is_there(stamps, *item)]
        yield records.encode_total(sum(info.size for _, info in found if info and stat.S_ISREG(info.mode)))
        if top.is_dir:
            yield records.encode(records.ENTER, "", top.mode)
        elif not found:
            yield records.encode(records.SKIP)
        for path, info in found:
            name = posixpath.basename(path)
            if info is None:
                yield records.encode(records.LEAVE)
            elif info.is_dir:
                yield records.encode(records.ENTER, name, info.mode)
            elif path and not stat.S_ISREG(info.mode):
                yield records.encode(records.SKIP, name)
            else:
                yield records.encode(records.FILE, name, info.mode, mtime=_stamp(info).mtime)
                async with aclosing(cast(Any, self.read(_join(source, path)))) as content:
                    async for piece in content:
                        for start in range(0, len(piece), records.MAX_CONTENT):
                            yield records.encode(records.MORE, content=piece[start : start + records.MAX_CONTENT])
        yield records.encode(records.END)

    async def unpack(self, target: str, records: AsyncIterable[bytes]) -> None:
        with path_errors(target):
            await _Unpacking(self, target, records).run()

    async def _found(self, source: str, top: FileInfo) -> AsyncIterator[tuple[str, FileInfo | None]]:
        if not top.is_dir:
            yield "", top
            return
        async for item in self._walk(source, ""):
            yield item

    async def _walk(self, source: str, above: str) -> AsyncIterator[tuple[str, FileInfo | None]]:
        """What is below a directory; after the last of each directory one without anything."""
        for info in await self.list(_join(source, above)):
            path = posixpath.join(above, info.name)
            yield path, info
            if info.is_dir:
                async for item in self._walk(source, path):
                    yield item
        yield above, None


def _join(source: str, path: str) -> str:
    return posixpath.join(source, path) if path else source


async def _digest(content: AsyncIterator[bytes]) -> bytes:
    found = sha256()
    async for piece in content:
        found.update(piece)
    return found.digest()


def _stamp(info: FileInfo) -> Stamp:
    return Stamp(info.size, info.mode & 0o777, int(info.mtime * 1e9))


def _is_there(stamps: Mapping[str, Stamp], path: str, info: FileInfo | None) -> bool:
    return info is not None and stat.S_ISREG(info.mode) and stamps.get(path) == _stamp(info)


class _Unpacking:
    def __init__(self, volume: FileByFile, target: str, stream: AsyncIterable[bytes]) -> None:
        self._volume = volume
        self._records = _decoded(stream)
        self._names: list[str] = []
        self._target = target

    async def run(self) -> None:
        record = await self._next()
        while record.kind != records.END:
            if record.kind == records.FILE:
                record = await self._file(record)
                continue
            if record.kind == records.ENTER:
                self._names.append(record.name)
                await self._volume.put_directory(self._path(), mode=record.mode)
            elif record.kind == records.LEAVE and self._names:
                self._names.pop()
            elif record.kind not in (records.TOTAL, records.SKIP):
                raise records.RecordError(f"a record of kind {record.kind} where it cannot be")
            record = await self._next()

    async def _file(self, record: records.Record) -> records.Record:
        """Writes it; the record after it."""
        after: list[records.Record] = []

        async def content() -> AsyncIterator[bytes]:
            yield bytes(record.content)
            while (more := await self._next()).kind == records.MORE:
                yield bytes(more.content)
            after.append(more)

        await self._volume.put(self._path(record.name), content(), mode=record.mode, mtime=record.mtime)
        return after[0]

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
