"""The contract of every volume: the files of one sandbox's workspace.

Paths are relative to the workspace; an absolute path is accepted where it lies under ``/workspace``. A path that
leaves it, also through a link or a directory swapped meanwhile, is a `PathError`; so is what is neither a file nor a
directory (FIFO, device, socket). Links inside that point inside are followed. Nothing ever hangs on a file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from pathlib import Path
from typing import Any, cast

from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.tai.volumes.comparison import Comparison, comparing, stamps_of
from yaosb_jupyter.tai.volumes.copying import pull_file, push_file
from yaosb_jupyter.tai.volumes.descriptors import NewFile, OpenFile
from yaosb_jupyter.tai.volumes.limits import CopyLimits
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
    async def stat(self, path: str, *, follow: bool = False) -> FileInfo:
        """Of the file itself: a link's target is told; with ``follow``, of what a link leads to."""

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
    def manifest(self, source: str, *, checksum: bool = False) -> AsyncIterator[bytes]:
        """What files `pack` would give, with digests if ``checksum`` (`yaosb_jupyter.guest.manifest`)."""

    @abstractmethod
    def pack(self, source: str, there: AsyncIterable[bytes] | None = None) -> AsyncIterator[bytes]:
        """A file or a directory with all below it as one stream of records (`yaosb_jupyter.guest.records`).

        Files that are as the manifest ``there`` tells are left out.
        """

    @abstractmethod
    async def unpack(self, target: str, records: AsyncIterable[bytes]) -> None:
        """Takes such a stream: ``target`` becomes its top.

        Directories that are there are filled, files replaced, each at once; a new directory is seen when it is whole.
        """

    def opened(self, path: str) -> AbstractAsyncContextManager[OpenFile | None]:  # noqa: ARG002 - for those that can
        """A regular file, opened; None for a directory, and where this process cannot have descriptors of files."""
        return nullcontext()

    def staged(self, path: str, *, mode: int | None = None) -> AbstractAsyncContextManager[NewFile | None]:  # noqa: ARG002
        """A new file for the place of ``path``, see `write`; nothing has happened where it was not committed.

        None where this process cannot have descriptors of files.
        """
        return nullcontext()

    async def push(
        self, source: Path, target: str, progress: Report | None = None, *, checksum: bool = False
    ) -> Copied:
        """Copies a file or a directory of this machine to ``target``, which is its new name; see `unpack`.

        Files that are there with the same size, mode and time are not sent; with ``checksum``, those with the same
        content and mode, whatever their time. Links and special files below ``source`` are left out, and told.
        """
        there = await stamps_of(self.manifest(target, checksum=checksum), target)
        if (file := await push_file(self, source, target, there, progress)) is not None:
            return file
        here = source_here(source, there, measured=progress is not None)

        async def pieces() -> AsyncIterator[bytes]:
            async with aclosing(in_slices(here.steps())) as slices:
                async for piece in slices:
                    if progress is not None:
                        progress(progress_of(here.packer))
                    if piece:
                        yield piece

        async with aclosing(cast(Any, pieces())) as records:
            await self.unpack(target, records)
        return copied(here.packer, target, here.packer.unchanged)

    async def pull(
        self,
        source: str,
        target: Path,
        progress: Report | None = None,
        *,
        checksum: bool = False,
        limits: CopyLimits | None = None,
    ) -> Copied:
        """Copies a file or a directory to ``target`` on this machine, which is its new name; parents are made.

        Nothing outside of ``target`` is touched, whatever the sandbox sends. What is not sent is told at `push`.
        Links and special files are left out, and told. Raises `LimitExceededError` where more comes than ``limits``
        allow.
        """
        if (file := await pull_file(self, source, target, progress, checksum=checksum, limits=limits)) is not None:
            return file
        here = target_here(target, limits)
        comparison = Comparison(target)
        there = comparing(self.manifest(source, checksum=checksum), comparison, source)
        async with aclosing(cast(Any, self.pack(source, there if await in_thread(target.exists) else None))) as records:
            async for _ in unpacking(here, records):
                if progress is not None:
                    progress(progress_of(here.unpacker))
        return copied(here.unpacker, here.path, comparison.same)
