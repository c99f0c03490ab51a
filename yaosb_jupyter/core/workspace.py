"""`Files`: a sandbox's files, as programs use them."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from pathlib import Path

from yaosb_jupyter.core.service import Service
from yaosb_jupyter.types import Copied, CopyProgress, FileInfo

_PIECE = 1 << 20


class Files:
    """Paths are relative to the workspace, or absolute under ``/workspace``; the sandbox sees the same files at once.

    Works on stopped sandboxes too. Raises `NotFoundError`, `PathError` for what leaves the workspace or is no file.
    """

    def __init__(self, service: Service, uid: str, id: str) -> None:
        self._service = service
        self._uid = uid
        self._id = id

    def __repr__(self) -> str:
        return f"<files of sandbox {self._id!r}>"

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes:
        """A file's content from byte ``offset``, at most ``size`` bytes. For big files see `stream`."""
        return b"".join([piece async for piece in self.stream(path, offset=offset, size=size)])

    async def read_text(self, path: str, *, encoding: str = "utf-8", errors: str = "strict") -> str:
        return (await self.read(path)).decode(encoding, errors)

    def stream(self, path: str, *, offset: int = 0, size: int | None = None) -> AsyncIterator[bytes]:
        """A file's content in pieces of at most 1 MiB."""
        return self._service.volume(self._uid).read(path, offset=offset, size=size)

    async def write(
        self, path: str, content: str | bytes | AsyncIterable[bytes], *, mode: int | None = None
    ) -> FileInfo:
        """Replaces a file at once, its directories made; text is UTF-8. ``mode`` as in chmod."""
        data = content.encode() if isinstance(content, str) else content
        pieces = _pieces(data) if isinstance(data, bytes) else data
        return await self._service.volume(self._uid).write(path, pieces, mode=mode)

    async def list(self, path: str = "") -> Sequence[FileInfo]:
        """A directory's entries, sorted by name."""
        return await self._service.volume(self._uid).list(path)

    async def stat(self, path: str) -> FileInfo:
        """Of the file itself: a link is not followed, its target told."""
        return await self._service.volume(self._uid).stat(path)

    async def mkdir(self, path: str) -> None:
        """Makes a directory and its parents. No-op where it exists."""
        await self._service.volume(self._uid).mkdir(path)

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        """Removes a file, a link, or a directory (a full one only if ``recursive``)."""
        await self._service.volume(self._uid).remove(path, recursive=recursive)

    async def rename(self, source: str, target: str) -> None:
        """Moves within the workspace, replacing a file."""
        await self._service.volume(self._uid).rename(source, target)

    async def upload(
        self, source: str | Path, target: str, *, progress: Callable[[CopyProgress], None] | None = None
    ) -> Copied:
        """Copies a file or a directory of this machine to ``target``, its name in the workspace, parents made.

        A directory that is there is filled, files are replaced; each is seen when it is whole. Links and special files
        below ``source`` are left out, and told. ``progress`` is called on the loop.
        """
        return await self._service.volume(self._uid).push(Path(source), target, progress)

    async def download(
        self, source: str, target: str | Path, *, progress: Callable[[CopyProgress], None] | None = None
    ) -> Copied:
        """Copies a file or a directory of the workspace to ``target``, its name on this machine; see `upload`.

        Whatever the sandbox holds or sends, nothing outside of ``target`` is written.
        """
        return await self._service.volume(self._uid).pull(source, Path(target), progress)


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), _PIECE):
        yield data[start : start + _PIECE]
