"""`Files`: a sandbox's files, as programs use them."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Sequence
from pathlib import PurePosixPath

from yaosb_jupyter.checks import check_number
from yaosb_jupyter.core.files.path import AsyncSandboxPath
from yaosb_jupyter.core.files.purepath import workspace_path
from yaosb_jupyter.core.service import Service
from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.types import FileInfo

_PIECE = 1 << 20
_MAX_SIZE = 2**63 - 1  # of a file


class Files:
    """Paths are relative to the workspace, or absolute under ``/workspace``; the sandbox sees the same files at once.

    ``files / "data" / "x.csv"`` gives a path with what `pathlib.Path` can do, ``files.root`` that of the workspace.
    Works on stopped sandboxes too. Raises `NotFoundError`, `PathError` for what leaves the workspace or is no file.
    """

    def __init__(self, service: Service, uid: str, id: str) -> None:
        self._service = service
        self._uid = uid
        self._id = id

    def __repr__(self) -> str:
        return f"<files of sandbox {self.id!r}>"

    @property
    def uid(self) -> str:
        """The sandbox's."""
        return self._uid

    @property
    def id(self) -> str:
        """The sandbox's."""
        return self._id

    def __truediv__(self, path: str | PurePosixPath) -> AsyncSandboxPath:
        return self.root / path

    @property
    def root(self) -> AsyncSandboxPath:
        """The workspace itself, as a path."""
        return AsyncSandboxPath(self, PurePosixPath())

    def _volume(self, *paths: str) -> Volume:
        """What all this stands on, where the paths can be some. Raises `InvalidOptionError`."""
        for path in paths:
            workspace_path(path, self.uid)
        return self._service.volume(self.uid)

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
