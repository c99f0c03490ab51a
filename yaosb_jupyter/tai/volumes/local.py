"""The volume of a workspace that is a directory of this host."""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from pathlib import Path

from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.tai.volumes.confined import ConfinedDirectory, StagedFile
from yaosb_jupyter.tai.volumes.paths import path_errors
from yaosb_jupyter.types import FileInfo

PIECE = 2**20
"""Bytes of one read or write."""


class LocalVolume(Volume):
    """Files of one directory, confined to it; the work is done in threads.

    ``owner`` (uid, gid) of new files where we are root; None: the directory's own. ``sandbox`` is named in errors.
    """

    def __init__(self, directory: Path, *, owner: tuple[int, int] | None = None, sandbox: str = "") -> None:
        self._files = ConfinedDirectory(directory, owner=owner, sandbox=sandbox)
        self._sandbox = sandbox

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> AsyncIterator[bytes]:
        opened: list[tuple[int, int]] = []  # filled in the thread: not lost when we are cancelled meanwhile
        try:
            await in_thread(lambda: opened.append(self._files.open_file(path)))
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
            await in_thread(lambda: staged.append(self._files.stage(path, mode)))
            async for data in content:
                for start in range(0, len(data), PIECE):
                    with path_errors(path, self._sandbox):
                        await in_thread(staged[0].write, memoryview(data)[start : start + PIECE])
            return await in_thread(self._files.commit, staged[0], path)
        finally:
            for file in staged:
                await in_thread(file.discard)

    async def stat(self, path: str) -> FileInfo:
        return await in_thread(self._files.stat, path)

    async def list(self, path: str = "") -> Sequence[FileInfo]:
        return await in_thread(self._files.list, path)

    async def mkdir(self, path: str) -> None:
        await in_thread(self._files.mkdir, path)

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        await in_thread(lambda: self._files.remove(path, recursive=recursive))

    async def rename(self, source: str, target: str) -> None:
        await in_thread(self._files.rename, source, target)
