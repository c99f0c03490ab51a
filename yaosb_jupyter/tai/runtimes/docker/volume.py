"""The files of a workspace that is a volume of the engine, by the way that is open at the moment."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

from yaosb_jupyter.errors import NotRunningError, PathError, SandboxLostError
from yaosb_jupyter.link.connection import Connection
from yaosb_jupyter.link.guest import CALL_TIMEOUT, GuestLink
from yaosb_jupyter.tai.runtimes.docker.archive import ArchiveVolume
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.tai.volumes.link import LinkVolume
from yaosb_jupyter.tai.volumes.local import LocalVolume
from yaosb_jupyter.tai.volumes.paths import path_errors
from yaosb_jupyter.types import FileInfo


class SharedVolume(LocalVolume):
    """A directory of this host that a container has, too. What its root left there, the engine removes for us."""

    def __init__(self, directory: Path, archive: Callable[[], ArchiveVolume], sandbox: str) -> None:
        super().__init__(directory, sandbox=sandbox)
        self._archive = archive

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        await _remove(super().remove(path, recursive=recursive), self._archive, path, recursive=recursive)


class EngineVolume(Volume):
    """Through the guest's link; by the engine's archive where the container has no guest, or does not run.

    ``link`` gives the link, None without a guest; it raises `NotRunningError`, `SandboxLostError`.
    """

    def __init__(self, link: Callable[[], Awaitable[GuestLink | None]], archive: ArchiveVolume, sandbox: str) -> None:
        self._link = link
        self._archive = archive
        self._sandbox = sandbox

    async def _volume(self) -> Volume:
        try:
            link = await self._link()
        except (NotRunningError, SandboxLostError):
            return self._archive
        if link is None:
            return self._archive

        async def connect() -> Connection:
            return await link.connected(CALL_TIMEOUT)

        return LinkVolume(connect, sandbox=self._sandbox, resting=lambda: link.resting)

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> AsyncIterator[bytes]:
        volume = await self._volume()
        async for piece in self._pieces(path, volume.read(path, offset=offset, size=size)):
            yield piece

    async def write(self, path: str, content: AsyncIterable[bytes], *, mode: int | None = None) -> FileInfo:
        with path_errors(path, self._sandbox):
            return await (await self._volume()).write(path, content, mode=mode)

    async def stat(self, path: str, *, follow: bool = False) -> FileInfo:
        with path_errors(path, self._sandbox):
            return await (await self._volume()).stat(path, follow=follow)

    async def list(self, path: str = "") -> Sequence[FileInfo]:
        with path_errors(path, self._sandbox):
            return await (await self._volume()).list(path)

    async def mkdir(self, path: str) -> None:
        with path_errors(path, self._sandbox):
            await (await self._volume()).mkdir(path)

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        with path_errors(path, self._sandbox):
            volume = await self._volume()
            trying = volume.remove(path, recursive=recursive)
            await _remove(trying, lambda: self._archive, path, recursive=recursive)

    async def rename(self, source: str, target: str) -> None:
        with path_errors(source, self._sandbox):
            await (await self._volume()).rename(source, target)

    async def manifest(self, source: str, *, checksum: bool = False) -> AsyncIterator[bytes]:
        volume = await self._volume()
        async for piece in self._pieces(source, volume.manifest(source, checksum=checksum)):
            yield piece

    async def pack(self, source: str, there: AsyncIterable[bytes] | None = None) -> AsyncIterator[bytes]:
        volume = await self._volume()
        async for piece in self._pieces(source, volume.pack(source, there)):
            yield piece

    async def unpack(self, target: str, records: AsyncIterable[bytes]) -> None:
        with path_errors(target, self._sandbox):
            await (await self._volume()).unpack(target, records)

    async def _pieces(self, path: str, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        with path_errors(path, self._sandbox):
            async with aclosing(cast(Any, pieces)):
                async for piece in pieces:
                    yield piece


async def _remove(trying: Awaitable[None], archive: Callable[[], ArchiveVolume], path: str, *, recursive: bool) -> None:
    """What may not be removed by who tries, another user of the container left: the engine may."""
    try:
        await trying
    except PathError as error:
        if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in (errno.EACCES, errno.EPERM):
            raise
        await archive().remove(path, recursive=recursive)
