"""A sandbox's files as its callers reach them: each call is checked and counts as use."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

from yaosb_jupyter.errors import PathNotFoundError
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.tai.volumes.descriptors import NewFile, OpenFile
from yaosb_jupyter.tai.volumes.limits import CopyLimits
from yaosb_jupyter.tai.volumes.trees import Report
from yaosb_jupyter.types import Copied, FileInfo


class TrackedVolume(Volume):
    """``use`` checks that the sandbox's files can be reached, and holds it in use while they are."""

    def __init__(self, use: Callable[[], AbstractContextManager[Volume]]) -> None:
        self._sandbox = use

    @contextmanager
    def _use(self) -> Iterator[Volume]:
        try:
            with self._sandbox() as volume:
                yield volume
        except PathNotFoundError:
            with self._sandbox():  # its files go with it: then that is told
                raise

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> AsyncIterator[bytes]:
        with self._use() as volume:
            async with aclosing(cast(Any, volume.read(path, offset=offset, size=size))) as content:
                async for piece in content:
                    yield piece

    async def write(self, path: str, content: AsyncIterable[bytes], *, mode: int | None = None) -> FileInfo:
        with self._use() as volume:
            return await volume.write(path, content, mode=mode)

    async def stat(self, path: str, *, follow: bool = False) -> FileInfo:
        with self._use() as volume:
            return await volume.stat(path, follow=follow)

    async def list(self, path: str = "") -> Sequence[FileInfo]:
        with self._use() as volume:
            return await volume.list(path)

    async def mkdir(self, path: str) -> None:
        with self._use() as volume:
            await volume.mkdir(path)

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        with self._use() as volume:
            await volume.remove(path, recursive=recursive)

    async def rename(self, source: str, target: str) -> None:
        with self._use() as volume:
            await volume.rename(source, target)

    async def manifest(self, source: str, *, checksum: bool = False) -> AsyncIterator[bytes]:
        with self._use() as volume:
            async for piece in volume.manifest(source, checksum=checksum):
                yield piece

    async def pack(self, source: str, there: AsyncIterable[bytes] | None = None) -> AsyncIterator[bytes]:
        with self._use() as volume:
            async for piece in volume.pack(source, there):
                yield piece

    async def unpack(self, target: str, records: AsyncIterable[bytes]) -> None:
        with self._use() as volume:
            await volume.unpack(target, records)

    @asynccontextmanager
    async def opened(self, path: str) -> AsyncIterator[OpenFile | None]:
        with self._use() as volume:
            async with volume.opened(path) as file:
                yield file

    @asynccontextmanager
    async def staged(self, path: str, *, mode: int | None = None) -> AsyncIterator[NewFile | None]:
        with self._use() as volume:
            async with volume.staged(path, mode=mode) as file:
                yield file

    async def push(
        self, source: Path, target: str, progress: Report | None = None, *, checksum: bool = False
    ) -> Copied:
        with self._use() as volume:
            return await volume.push(source, target, progress, checksum=checksum)

    async def pull(
        self,
        source: str,
        target: Path,
        progress: Report | None = None,
        *,
        checksum: bool = False,
        limits: CopyLimits | None = None,
    ) -> Copied:
        with self._use() as volume:
            return await volume.pull(source, target, progress, checksum=checksum, limits=limits)
