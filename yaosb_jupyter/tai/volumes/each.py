"""Trees file by file, for a volume that has no better way."""

from __future__ import annotations

import posixpath
import stat
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from yaosb_jupyter.guest import records
from yaosb_jupyter.guest.manifest import Stamp, encode_stamp
from yaosb_jupyter.tai.volumes.comparison import stamps_of
from yaosb_jupyter.tai.volumes.paths import path_errors
from yaosb_jupyter.types import FileInfo

if TYPE_CHECKING:
    from yaosb_jupyter.tai.volumes.base import Volume


async def manifest_each(volume: Volume, source: str) -> AsyncIterator[bytes]:
    """See `Volume.manifest`. Always with digests: the times that such a volume keeps and tells are not exact."""
    top = await volume.stat(source)
    if top.is_dir:
        yield records.encode(records.ENTER)
    async for path, info in _files(volume, source, top):
        name = posixpath.basename(path)
        if info is None:
            yield records.encode(records.LEAVE)
        elif info.is_dir:
            yield records.encode(records.ENTER, name)
        elif stat.S_ISREG(info.mode):
            whole = posixpath.join(source, path) if path else source
            yield encode_stamp(name, _stamp(info)._replace(digest=await _digest(volume, whole)))


async def pack_each(volume: Volume, source: str, there: AsyncIterable[bytes] | None = None) -> AsyncIterator[bytes]:
    """See `Volume.pack`. Files are held against the times in ``there``, which are those of `manifest_each`."""
    stamps = {} if there is None else await stamps_of(there, source)
    top = await volume.stat(source)
    found = [(path, info) async for path, info in _files(volume, source, top) if not _is_there(stamps, path, info)]
    yield records.encode_total(sum(info.size for _, info in found if info and stat.S_ISREG(info.mode)))
    if not found:  # a file alone, which is there
        yield records.encode(records.SKIP)
    if top.is_dir:
        yield records.encode(records.ENTER, "", top.mode)
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
            async for piece in volume.read(posixpath.join(source, path) if path else source):
                for start in range(0, len(piece), records.MAX_CONTENT):
                    yield records.encode(records.MORE, content=piece[start : start + records.MAX_CONTENT])
    yield records.encode(records.END)


async def _digest(volume: Volume, path: str) -> bytes:
    found = sha256()
    async for piece in volume.read(path):
        found.update(piece)
    return found.digest()


def _stamp(info: FileInfo) -> Stamp:
    return Stamp(info.size, info.mode & 0o777, int(info.mtime * 1e9))


def _is_there(stamps: Mapping[str, Stamp], path: str, info: FileInfo | None) -> bool:
    return info is not None and stat.S_ISREG(info.mode) and stamps.get(path) == _stamp(info)


async def _files(volume: Volume, source: str, top: FileInfo) -> AsyncIterator[tuple[str, FileInfo | None]]:
    if not top.is_dir:
        yield "", top
        return
    async for item in _walk(volume, source):
        yield item


async def _walk(volume: Volume, source: str, above: str = "") -> AsyncIterator[tuple[str, FileInfo | None]]:
    """What is below a directory; after the last of each directory one without anything."""
    for info in await volume.list(posixpath.join(source, above) if above else source):
        path = posixpath.join(above, info.name)
        yield path, info
        if info.is_dir:
            async for item in _walk(volume, source, path):
                yield item
    yield above, None


async def unpack_each(volume: Volume, target: str, stream: AsyncIterable[bytes]) -> None:
    """See `Volume.unpack`."""
    with path_errors(target):
        await _Unpacking(volume, target, stream).run()


class _Unpacking:
    def __init__(self, volume: Volume, target: str, stream: AsyncIterable[bytes]) -> None:
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
                await self._volume.mkdir(self._path())
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

        await self._volume.write(self._path(record.name), content(), mode=record.mode)
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
