"""`Files`, blocking: a sandbox's files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from yaosb_jupyter.blocking.face import Face, feed
from yaosb_jupyter.blocking.loop import Loop
from yaosb_jupyter.blocking.path import SandboxPath
from yaosb_jupyter.core.files import workspace as asynchronous
from yaosb_jupyter.types import FileInfo


class Files(Face):
    """See the asynchronous `Files`: paths, what is followed, and the errors are told there."""

    def __init__(self, loop: Loop, inner: asynchronous.Files) -> None:
        super().__init__(loop)
        self._inner = inner

    def __repr__(self) -> str:
        return repr(self._inner)

    def __truediv__(self, path: str | PurePosixPath) -> SandboxPath:
        return self.root / path

    @property
    def root(self) -> SandboxPath:
        """The workspace itself, as a path."""
        return SandboxPath(self._loop, self._inner.root)

    @property
    def uid(self) -> str:
        """The sandbox's."""
        return self._inner.uid

    @property
    def id(self) -> str:
        """The sandbox's."""
        return self._inner.id

    def read(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes:
        """A file's content from byte ``offset``, at most ``size`` bytes. For big files see `stream`."""
        return self._run(lambda: self._inner.read(path, offset=offset, size=size))

    def read_text(self, path: str, *, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._run(lambda: self._inner.read_text(path, encoding=encoding, errors=errors))

    def stream(self, path: str, *, offset: int = 0, size: int | None = None) -> Iterator[bytes]:
        """A file's content in pieces of at most 1 MiB."""
        return self._iterate(lambda: self._inner.stream(path, offset=offset, size=size))

    def write(self, path: str, content: str | bytes | Iterable[bytes], *, mode: int | None = None) -> FileInfo:
        """Replaces a file at once, its directories made; text is UTF-8. ``mode`` as in chmod."""
        whole = str | bytes | bytearray | memoryview
        given = content if isinstance(content, whole) or not isinstance(content, Iterable) else feed(content)
        return self._run(lambda: self._inner.write(path, given, mode=mode))

    def list(self, path: str = "") -> Sequence[FileInfo]:
        """A directory's entries, sorted by name."""
        return self._run(lambda: self._inner.list(path))

    def stat(self, path: str, *, follow: bool = False) -> FileInfo:
        """Of the file itself: a link's target is told; with ``follow``, of what a link leads to."""
        return self._run(lambda: self._inner.stat(path, follow=follow))

    def mkdir(self, path: str) -> None:
        """Makes a directory and its parents. No-op where it exists."""
        self._run(lambda: self._inner.mkdir(path))

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Removes a file, a link, or a directory (a full one only if ``recursive``)."""
        self._run(lambda: self._inner.remove(path, recursive=recursive))

    def rename(self, source: str, target: str) -> None:
        """Moves within the workspace, replacing a file."""
        self._run(lambda: self._inner.rename(source, target))
