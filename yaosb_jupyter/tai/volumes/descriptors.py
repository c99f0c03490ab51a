"""Single files of this machine by their descriptors, which blocking calls open and commit in threads."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from yaosb_jupyter.guest.confined import entry_of
from yaosb_jupyter.guest.staging import StagedFile, write_all
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.tai.volumes.paths import file_info, path_errors
from yaosb_jupyter.types import FileInfo

PIECE = 1 << 20
"""Bytes of one read or write."""


@dataclass(frozen=True, kw_only=True)
class OpenFile:
    """A regular file that is open for reading, as it was when it was opened."""

    descriptor: int
    status: os.stat_result

    @property
    def size(self) -> int:
        return self.status.st_size

    @property
    def mode(self) -> int:
        """Permissions that may be given."""
        return self.status.st_mode & 0o777


@dataclass(frozen=True, kw_only=True)
class NewFile:
    """A file that is written by ``descriptor`` and seen under its name once ``commit`` was called, for the last word.

    ``commit`` raises what the volume's calls do.
    """

    descriptor: int
    commit: Callable[[], Awaitable[FileInfo]]


@asynccontextmanager
async def opened(open_file: Callable[[], int], path: str, sandbox: str = "") -> AsyncIterator[OpenFile | None]:
    """The file that ``open_file`` opens; None if it is a directory. Errors name ``path`` and ``sandbox``."""
    descriptors: list[int] = []  # filled in the thread: not lost when we are cancelled meanwhile

    def open_it() -> os.stat_result:
        descriptors.append(open_file())
        return os.fstat(descriptors[0])

    try:
        with path_errors(path, sandbox):
            status = await in_thread(open_it)
        if stat.S_ISREG(status.st_mode):
            yield OpenFile(descriptor=descriptors[0], status=status)
        else:
            yield None
    finally:
        for descriptor in descriptors:
            await in_thread(os.close, descriptor)  # which frees the file, if it was removed meanwhile


@asynccontextmanager
async def staged(
    stage: Callable[[], StagedFile], names: Sequence[str], path: str, sandbox: str = ""
) -> AsyncIterator[NewFile]:
    """The file that ``stage`` begins; discarded where it was not committed. Errors name ``path`` and ``sandbox``."""
    files: list[StagedFile] = []

    async def commit() -> FileInfo:
        with path_errors(path, sandbox):
            status = await in_thread(files[0].commit)
            return file_info(names, entry_of(files[0].name, status, None))

    try:
        with path_errors(path, sandbox):
            await in_thread(lambda: files.append(stage()))
        yield NewFile(descriptor=files[0].fd, commit=commit)
    finally:
        for file in files:
            if file.fd >= 0:
                await in_thread(file.discard)


async def read_pieces(
    file: OpenFile, path: str, offset: int = 0, size: int | None = None, sandbox: str = ""
) -> AsyncGenerator[bytes]:
    """What the file held when it was opened, of that ``size`` bytes from ``offset`` on."""
    end = file.size if size is None else min(file.size, offset + size)
    while offset < end:
        with path_errors(path, sandbox):
            data = await in_thread(os.pread, file.descriptor, min(PIECE, end - offset), offset)
        if not data:
            return  # cut shorter meanwhile
        offset += len(data)
        yield data


async def write_piece(file: NewFile, path: str, data: bytes, sandbox: str = "") -> None:
    """Appends ``data``."""
    for start in range(0, len(data), PIECE):
        with path_errors(path, sandbox):
            await in_thread(write_all, file.descriptor, memoryview(data)[start : start + PIECE])
