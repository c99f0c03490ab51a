"""The files of a sandbox, through the daemon."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.daemon import requests as ask
from yaosb_jupyter.daemon.lending import borrowed
from yaosb_jupyter.daemon.line import Line, read_value, told
from yaosb_jupyter.guest import frames
from yaosb_jupyter.link.stream import Stream
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.tai.volumes.descriptors import NewFile, OpenFile
from yaosb_jupyter.types import FileInfo
from yaosb_jupyter.wire.codec import from_json

CHANNELS = {frames.DATA: ExecChannel.STDOUT, frames.DATA_ERR: ExecChannel.STDERR}


async def read_data(
    line: Line, request: ask.Request, content: AsyncIterable[bytes] | None = None
) -> AsyncGenerator[tuple[ExecChannel, bytes]]:
    """The data that a request gives, after it has got ``content``; leaving early ends the request."""
    stream = await line.open(request)
    try:
        if content is not None:
            await _send(stream, content)
        with told(request):
            while (item := await stream.receive()) is not None:
                if item[0] in CHANNELS:
                    yield CHANNELS[item[0]], item[1]
            await stream.result()
    finally:
        await stream.let_go()


async def _send(stream: Stream, content: AsyncIterable[bytes]) -> None:
    async for data in content:
        await stream.send(data)
        if stream.closed:
            break  # refused; the answer tells why
    await stream.send_eof()


class RemoteVolume(Volume):
    def __init__(self, line: Line, ref: str) -> None:
        self._line = line
        self._ref = ref

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> AsyncIterator[bytes]:
        request = ask.FilesRead(ref=self._ref, path=path, offset=offset, size=size)
        async with aclosing(read_data(self._line, request)) as pieces:
            async for _, data in pieces:
                yield data

    async def write(self, path: str, content: AsyncIterable[bytes], *, mode: int | None = None) -> FileInfo:
        request = ask.FilesWrite(ref=self._ref, path=path, mode=mode)
        return from_json(FileInfo, await self._send(request, content))

    async def stat(self, path: str, *, follow: bool = False) -> FileInfo:
        return await self._line.call(FileInfo, ask.FilesStat(ref=self._ref, path=path, follow=follow))

    async def list(self, path: str = "") -> Sequence[FileInfo]:
        return await self._line.items(FileInfo, ask.FilesList(ref=self._ref, path=path))

    async def mkdir(self, path: str) -> None:
        await self._line.call(type(None), ask.FilesMkdir(ref=self._ref, path=path))

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        await self._line.call(type(None), ask.FilesRemove(ref=self._ref, path=path, recursive=recursive))

    async def rename(self, source: str, target: str) -> None:
        await self._line.call(type(None), ask.FilesRename(ref=self._ref, source=source, target=target))

    @asynccontextmanager
    async def opened(self, path: str) -> AsyncIterator[OpenFile | None]:
        async with borrowed(self._line, ask.FilesOpen(ref=self._ref, path=path)) as loan:
            yield None if loan is None else OpenFile(descriptor=loan.descriptor, status=os.fstat(loan.descriptor))

    @asynccontextmanager
    async def staged(self, path: str, *, mode: int | None = None) -> AsyncIterator[NewFile | None]:
        async with borrowed(self._line, ask.FilesStage(ref=self._ref, path=path, mode=mode)) as loan:
            if loan is None:
                yield None
                return

            async def commit() -> FileInfo:
                return from_json(FileInfo, await loan.give_back())

            yield NewFile(descriptor=loan.descriptor, commit=commit)

    async def manifest(self, source: str, *, checksum: bool = False) -> AsyncIterator[bytes]:
        request = ask.FilesManifest(ref=self._ref, source=source, checksum=checksum)
        async with aclosing(read_data(self._line, request)) as pieces:
            async for _, data in pieces:
                yield data

    async def pack(self, source: str, there: AsyncIterable[bytes] | None = None) -> AsyncIterator[bytes]:
        request = ask.FilesPack(ref=self._ref, source=source, manifest=there is not None)
        async with aclosing(read_data(self._line, request, there)) as pieces:
            async for _, data in pieces:
                yield data

    async def unpack(self, target: str, records: AsyncIterable[bytes]) -> None:
        await self._send(ask.FilesUnpack(ref=self._ref, target=target), records)

    async def _send(self, request: ask.Request, content: AsyncIterable[bytes]) -> Any:
        """Sends data; what the daemon answers."""
        stream = await self._line.open(request)
        try:
            await _send(stream, content)
            with told(request):
                return await read_value(stream)
        finally:
            await stream.let_go()
