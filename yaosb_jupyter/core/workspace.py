"""`Files`: a sandbox's files, as programs use them."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from pathlib import Path

from yaosb_jupyter.checks import check_number
from yaosb_jupyter.core.service import Service
from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.types import Copied, CopyProgress, FileInfo

_PIECE = 1 << 20
_MAX_SIZE = 2**63 - 1  # of a file


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

    def _volume(self, *paths: str) -> Volume:
        for path in paths:
            if not isinstance(path, str):
                raise InvalidOptionError(f"path={path!r} is not valid", hint="accepted: text")
        return self._service.volume(self._uid)

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes:
        """A file's content from byte ``offset``, at most ``size`` bytes. For big files see `stream`."""
        return b"".join([piece async for piece in self.stream(path, offset=offset, size=size)])

    async def read_text(self, path: str, *, encoding: str = "utf-8", errors: str = "strict") -> str:
        return (await self.read(path)).decode(encoding, errors)

    def stream(self, path: str, *, offset: int = 0, size: int | None = None) -> AsyncIterator[bytes]:
        """A file's content in pieces of at most 1 MiB."""
        check_number("offset", offset, 0, _MAX_SIZE)
        if size is not None:
            check_number("size", size, 0, _MAX_SIZE)
        return self._volume(path).read(path, offset=offset, size=size)

    async def write(
        self, path: str, content: str | bytes | AsyncIterable[bytes], *, mode: int | None = None
    ) -> FileInfo:
        """Replaces a file at once, its directories made; text is UTF-8. ``mode`` as in chmod."""
        if mode is not None:
            check_number("mode", mode, 0, 0o7777)
        return await self._volume(path).write(path, _pieces_of(content), mode=mode)

    async def list(self, path: str = "") -> Sequence[FileInfo]:
        """A directory's entries, sorted by name."""
        return await self._volume(path).list(path)

    async def stat(self, path: str, *, follow: bool = False) -> FileInfo:
        """Of the file itself: a link's target is told; with ``follow``, of what a link leads to."""
        return await self._volume(path).stat(path, follow=follow)

    async def mkdir(self, path: str) -> None:
        """Makes a directory and its parents. No-op where it exists."""
        await self._volume(path).mkdir(path)

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        """Removes a file, a link, or a directory (a full one only if ``recursive``)."""
        await self._volume(path).remove(path, recursive=recursive)

    async def rename(self, source: str, target: str) -> None:
        """Moves within the workspace, replacing a file."""
        await self._volume(source, target).rename(source, target)

    async def upload(
        self,
        source: str | Path,
        target: str,
        *,
        checksum: bool = False,
        progress: Callable[[CopyProgress], None] | None = None,
    ) -> Copied:
        """Copies a file or a directory of this machine to ``target``, its name in the workspace, parents made.

        A directory that is there is filled, files are replaced; each is seen when it is whole. Files that are there
        with the same size, mode and time are not sent: what runs inside can change a file and set its time back, so
        where that matters, and where times tell nothing, ``checksum`` has contents compared in place of times. Links
        and special files below ``source`` are left out, and told. ``progress`` is called on the loop.
        """
        return await self._volume(target).push(Path(source), target, progress, checksum=checksum)

    async def download(
        self,
        source: str,
        target: str | Path,
        *,
        checksum: bool = False,
        progress: Callable[[CopyProgress], None] | None = None,
    ) -> Copied:
        """Copies a file or a directory of the workspace to ``target``, its name on this machine; see `upload`.

        Whatever the sandbox holds or sends, nothing outside of ``target`` is written.
        """
        return await self._volume(source).pull(source, Path(target), progress, checksum=checksum)


def _pieces_of(content: object) -> AsyncIterable[bytes]:
    if isinstance(content, str):
        try:
            content = content.encode()
        except UnicodeEncodeError as error:
            raise InvalidOptionError(
                f"the content cannot be written as UTF-8: {error.reason}", hint="encode it yourself, and give bytes"
            ) from error
    if isinstance(content, bytes | bytearray | memoryview):
        return _pieces(bytes(content))
    if isinstance(content, AsyncIterable):
        return content
    raise InvalidOptionError(
        f"content of type {type(content).__name__} cannot be written",
        hint="accepted: text, bytes, an asynchronous iterable of bytes",
    )


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), _PIECE):
        yield data[start : start + _PIECE]
