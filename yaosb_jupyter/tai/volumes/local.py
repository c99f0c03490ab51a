"""The volume of a workspace that is a directory of this host."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path

from yaosb_jupyter.guest.confined import ConfinedDirectory, Entry
from yaosb_jupyter.guest.manifest import Stamp, survey
from yaosb_jupyter.guest.packing import Packer
from yaosb_jupyter.guest.unpacking import Unpacker, Within
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.tai.volumes.comparison import Comparison, comparing, stamps_of
from yaosb_jupyter.tai.volumes.copying import pull_file, push_file
from yaosb_jupyter.tai.volumes.descriptors import NewFile, OpenFile, opened, read_pieces, staged, write_piece
from yaosb_jupyter.tai.volumes.limits import CopyLimits
from yaosb_jupyter.tai.volumes.paths import file_info, path_error, path_errors, split_named, split_path
from yaosb_jupyter.tai.volumes.trees import (
    Report,
    Source,
    Target,
    copy_directly,
    in_slices,
    source_here,
    target_here,
    told_of,
    unpacking,
)
from yaosb_jupyter.types import WORKDIR, Copied, FileInfo


class LocalVolume(Volume):
    """Files of one directory, confined to it; the work is done in threads.

    ``owner`` (uid, gid) of new files where we are root; None: the directory's own. ``sandbox`` is named in errors.
    """

    def __init__(self, directory: Path, *, owner: tuple[int, int] | None = None, sandbox: str = "") -> None:
        self._mounts = (WORKDIR, str(directory))
        self._files = ConfinedDirectory(str(directory), self._mounts, owner)
        self._sandbox = sandbox

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> AsyncIterator[bytes]:
        async with self._open(path) as file:
            if file is None:
                raise path_error(errno.EISDIR, path, self._sandbox)
            async with aclosing(read_pieces(file, path, offset, size, self._sandbox)) as pieces:
                async for data in pieces:
                    yield data

    async def write(self, path: str, content: AsyncIterable[bytes], *, mode: int | None = None) -> FileInfo:
        async with self._stage(path, mode) as file:
            async for data in content:
                await write_piece(file, path, data, self._sandbox)
            return await file.commit()

    def opened(self, path: str) -> AbstractAsyncContextManager[OpenFile | None]:
        return self._open(path)

    def staged(self, path: str, *, mode: int | None = None) -> AbstractAsyncContextManager[NewFile | None]:
        return self._stage(path, mode)

    def _open(self, path: str) -> AbstractAsyncContextManager[OpenFile | None]:
        return opened(self._opener(path), path, self._sandbox)

    def _stage(self, path: str, mode: int | None) -> AbstractAsyncContextManager[NewFile]:
        with path_errors(path, self._sandbox):
            names = split_named(path, self._mounts)
        return staged(lambda: self._files.stage(names, mode), names, path, self._sandbox)

    async def stat(self, path: str, *, follow: bool = False) -> FileInfo:
        with path_errors(path, self._sandbox):
            names = split_path(path, self._mounts)
            return file_info(names, await in_thread(self._files.stat, names, follow))

    async def list(self, path: str = "") -> Sequence[FileInfo]:
        with path_errors(path, self._sandbox):
            names = split_path(path, self._mounts)
            found: list[Entry] = await in_thread(lambda: sorted(self._files.list(names)))
            return [file_info((*names, entry.name), entry) for entry in found]

    async def mkdir(self, path: str) -> None:
        with path_errors(path, self._sandbox):
            names = split_path(path, self._mounts)
            await in_thread(lambda: os.close(self._files.make_directory(names)))

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        with path_errors(path, self._sandbox):
            names = split_named(path, self._mounts)
            await in_thread(lambda: [None for _ in self._files.remove(names, recursive)])

    async def rename(self, source: str, target: str) -> None:
        with path_errors(f"{source} -> {target}", self._sandbox):
            names = split_named(source, self._mounts)
            await in_thread(self._files.rename, names, split_named(target, self._mounts))

    async def manifest(self, source: str, *, checksum: bool = False) -> AsyncIterator[bytes]:
        opener = self._opener(source)
        steps = told_of(survey(opener, checksum), source, self._sandbox)
        async with aclosing(in_slices(steps)) as pieces:
            async for piece in pieces:
                if piece:
                    yield piece

    async def pack(self, source: str, there: AsyncIterable[bytes] | None = None) -> AsyncIterator[bytes]:
        found = self._source(source, {} if there is None else await stamps_of(there, source), measured=True)
        async with aclosing(in_slices(found.steps())) as pieces:
            async for piece in pieces:
                if piece:
                    yield piece

    async def unpack(self, target: str, records: AsyncIterable[bytes]) -> None:
        async with aclosing(unpacking(self._target(target), records)) as steps:
            async for _ in steps:
                pass

    async def push(
        self, source: Path, target: str, progress: Report | None = None, *, checksum: bool = False
    ) -> Copied:
        there = await stamps_of(self.manifest(target, checksum=checksum), target)
        if (file := await push_file(self, source, target, there, progress)) is not None:
            return file
        here = source_here(source, there, measured=progress is not None)
        return await copy_directly(here, self._target(target), progress)

    async def pull(
        self,
        source: str,
        target: Path,
        progress: Report | None = None,
        *,
        checksum: bool = False,
        limits: CopyLimits | None = None,
    ) -> Copied:
        if (file := await pull_file(self, source, target, progress, checksum=checksum, limits=limits)) is not None:
            return file
        there: Mapping[str, Stamp] = {}
        if await in_thread(target.exists):
            manifest = self.manifest(source, checksum=checksum)
            there = await stamps_of(comparing(manifest, Comparison(target), source), source)
        found = self._source(source, there, measured=progress is not None or limits is not None)
        return await copy_directly(found, target_here(target, limits), progress)

    def _opener(self, path: str) -> Callable[[], int]:
        with path_errors(path, self._sandbox):
            names = split_path(path, self._mounts)
        return lambda: self._files.open_tree(names)

    def _source(self, path: str, there: Mapping[str, Stamp], *, measured: bool) -> Source:
        return Source(packer=Packer(self._opener(path), there, measured=measured), path=path, sandbox=self._sandbox)

    def _target(self, path: str) -> Target:
        with path_errors(path, self._sandbox):
            within = Within(self._files, split_path(path, self._mounts))
        return Target(unpacker=Unpacker(within), path=path, sandbox=self._sandbox)
