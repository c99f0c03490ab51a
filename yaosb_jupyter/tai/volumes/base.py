"""The contract of every volume: the files of one sandbox's workspace.

Paths are relative to the workspace; an absolute path is accepted where it lies under ``/workspace``. A path that
leaves it, also through a link or a directory swapped meanwhile, is a `PathError`; so is what is neither a file nor a
directory (FIFO, device, socket). Links inside that point inside are followed. Nothing ever hangs on a file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Sequence

from yaosb_jupyter.types import FileInfo


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
