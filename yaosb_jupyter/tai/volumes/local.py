"""The volume of a workspace that is a directory of this host."""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

from yaosb_jupyter.guest.confined import ConfinedDirectory, Entry, entry_of
from yaosb_jupyter.guest.manifest import Stamp, survey
from yaosb_jupyter.guest.packing import Packer
from yaosb_jupyter.guest.staging import StagedFile
from yaosb_jupyter.guest.unpacking import Unpacker, Within
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.tai.volumes.comparison import Comparison, comparing, stamps_of
from yaosb_jupyter.tai.volumes.limits import CopyLimits
from yaosb_jupyter.tai.volumes.paths import file_info, path_errors, split_named, split_path
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

PIECE = 2**20
"""Bytes of one read or write."""


class LocalVolume(Volume):
    """Files of one directory, confined to it; the work is done in threads.

    ``owner`` (uid, gid) of new files where we are root; None: the directory's own. ``sandbox`` is named in errors.
    """

    def __init__(self, directory: Path, *, owner: tuple[int, int] | None = None, sandbox: str = "") -> None:
        self._mounts = (WORKDIR, str(directory))
        self._files = ConfinedDirectory(str(directory), self._mounts, owner)
        self._sandbox = sandbox

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> AsyncIterator[bytes]:
        opened: list[tuple[int, int]] = []  # filled in the thread: not lost when we are cancelled meanwhile
        try:
            with path_errors(path, self._sandbox):
                names = split_named(path, self._mounts)
                await in_thread(lambda: opened.append(self._files.open_file(names)))
            fd, end = opened[0]
            if size is not None:
                end = min(end, offset + size)
            while offset < end:
                with path_errors(path, self._sandbox):
                    data = await in_thread(os.pread, fd, min(PIECE, end - offset), offset)
                if not data:
                    return  # cut shorter meanwhile
                offset += len(data)
                yield data
        finally:
            for fd, _ in opened:
                os.close(fd)

    async def write(self, path: str, content: AsyncIterable[bytes], *, mode: int | None = None) -> FileInfo:
        staged: list[StagedFile] = []
        try:
            with path_errors(path, self._sandbox):
                names = split_named(path, self._mounts)
                await in_thread(lambda: staged.append(self._files.stage(names, mode)))
            async for data in content:
                for start in range(0, len(data), PIECE):
                    with path_errors(path, self._sandbox):
                        await in_thread(staged[0].write, memoryview(data)[start : start + PIECE])
            with path_errors(path, self._sandbox):
                status = await in_thread(staged[0].commit)
                return file_info(names, entry_of(staged[0].name, status, None))
        finally:
            for file in staged:
                await in_thread(file.discard)

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
