"""The contract of every volume: the files of one sandbox's workspace.

Paths are relative to the workspace; an absolute path is accepted where it lies under ``/workspace``. A path that
leaves it, also through a link or a directory swapped meanwhile, is a `PathError`; so is what is neither a file nor a
directory (FIFO, device, socket). Links inside that point inside are followed. Nothing ever hangs on a file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

from yaosb_jupyter.tai.volumes.trees import Report, copied, in_slices, progress_of, source_here, target_here, unpacking
from yaosb_jupyter.types import Copied, FileInfo


class Volume(ABC):
    """The files of one workspace. All errors are `NotFoundError`, `PathError` or `UnavailableError`."""

    @abstractmethod
    def read(self, path: str, *, offset: int = 0, size: int | None = None) -> AsyncIterator[bytes]:
        """A file's content from ``offset``, at most ``size`` bytes, in pieces of at most 1 MiB."""

    @abstractmethod
    async def write(self, path: str, content: AsyncIterable[bytes], *, mode: int | None = None) -> FileInfo:
        """Replaces a file atomically, parents made; owned by the sandbox's user. A failed write leaves the old file."""

    @abstractmethod
    async def stat(self, path: str) -> FileInfo:
        """Of the file itself: a link is not followed, its target told."""

    @abstractmethod
    async def list(self, path: str = "") -> Sequence[FileInfo]:
        """A directory's entries, sorted by name."""

    @abstractmethod
    async def mkdir(self, path: str) -> None:
        """Makes a directory and its parents. No-op where it exists."""

    @abstractmethod
    async def remove(self, path: str, *, recursive: bool = False) -> None:
        """Removes a file, a link, or a directory (a full one only if ``recursive``). Never the workspace itself."""

    @abstractmethod
    async def rename(self, source: str, target: str) -> None:
        """Moves within the workspace, replacing a file."""

    @abstractmethod
    def pack(self, source: str) -> AsyncIterator[bytes]:
        """A file or a directory with all below it as one stream of records (`yaosb_jupyter.guest.records`)."""

    @abstractmethod
    async def unpack(self, target: str, records: AsyncIterable[bytes]) -> None:
        """Takes such a stream: ``target`` becomes its top. Directories are filled, files replaced, each at once."""

    async def push(self, source: Path, target: str, progress: Report | None = None) -> Copied:
        """Copies a file or a directory of this machine to ``target``, which is its new name; see `unpack`.

        Links and special files below ``source`` are left out, and told.
        """
        here = source_here(source)

        async def pieces() -> AsyncIterator[bytes]:
            async with aclosing(in_slices(here.steps())) as slices:
                async for piece in slices:
                    if progress is not None:
                        progress(progress_of(here.packer))
                    if piece:
                        yield piece

        async with aclosing(cast(Any, pieces())) as records:
            await self.unpack(target, records)
        return copied(here.packer, target)

    async def pull(self, source: str, target: Path, progress: Report | None = None) -> Copied:
        """Copies a file or a directory to ``target`` on this machine, which is its new name; parents are made.

        Nothing outside of ``target`` is touched, whatever the sandbox sends. Links and special files are left out,
        and told.
        """
        here = target_here(target)
        async with aclosing(cast(Any, self.pack(source))) as records:
            async for _ in unpacking(here, records):
                if progress is not None:
                    progress(progress_of(here.unpacker))
        return copied(here.unpacker, here.path)
