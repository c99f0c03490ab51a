"""`SandboxPath`: a path in a sandbox, for programs that do not use asyncio."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any, Self, overload

from yaosb_jupyter.blocking.face import Face
from yaosb_jupyter.blocking.loop import Loop
from yaosb_jupyter.core.files.opening import BinaryMode, Opening, TextMode, open_file
from yaosb_jupyter.core.files.path import AsyncSandboxPath
from yaosb_jupyter.core.files.purepath import PureSandboxPath
from yaosb_jupyter.types import Copied, CopyProgress, FileInfo


class SandboxPath(PureSandboxPath, Face):
    """Made by ``sandbox.files / "data" / "x.csv"``; see `AsyncSandboxPath`, whose every call this waits for."""

    def __init__(self, loop: Loop, inner: AsyncSandboxPath) -> None:
        PureSandboxPath.__init__(self, inner._uid, inner._id, inner._path)
        Face.__init__(self, loop)
        self._inner = inner

    def _at(self, path: PurePosixPath) -> Self:
        return type(self)(self._loop, self._inner._at(path))

    @overload
    def open(
        self,
        mode: TextMode = "r",
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> io.TextIOWrapper: ...

    @overload
    def open(
        self, mode: BinaryMode, *, encoding: None = None, errors: None = None, newline: None = None
    ) -> io.BufferedReader | io.BufferedWriter: ...

    def open(
        self, mode: str = "r", *, encoding: str | None = None, errors: str | None = None, newline: str | None = None
    ) -> Any:
        """A file as the built-in ``open`` gives it: text in UTF-8 unless told otherwise, or ``"rb"`` and so on.

        Reading goes anywhere by ``seek``. What is written is streamed, its directories made, and appears under its name
        when the file is closed; if its ``with`` is left by an exception, the old file stays. ``a`` writes the file anew
        with what was there; whether one is there already, ``x`` looks when it is opened.
        """
        how = Opening.of(mode, encoding, errors, newline)
        return self._run(lambda: open_file(self._inner._files, str(self), how, self._loop.run))

    def read_bytes(self) -> bytes:
        return self._run(self._inner.read_bytes)

    def read_text(self, encoding: str | None = None, errors: str | None = None, newline: str | None = None) -> str:
        """UTF-8 unless told otherwise."""
        return self._run(lambda: self._inner.read_text(encoding, errors, newline))

    def write_bytes(self, data: bytes) -> int:
        """Replaces the file at once, its directories made; the number of bytes."""
        return self._run(lambda: self._inner.write_bytes(data))

    def write_text(
        self, data: str, encoding: str | None = None, errors: str | None = None, newline: str | None = None
    ) -> int:
        """The same in UTF-8 unless told otherwise; the number of characters."""
        return self._run(lambda: self._inner.write_text(data, encoding, errors, newline))

    def iterdir(self) -> Iterator[Self]:
        """What is in the directory, by name."""
        return map(self._face, self._iterate(self._inner.iterdir))

    def glob(self, pattern: str) -> Iterator[Self]:
        """What a pattern means below here, by name: ``"*.csv"``, ``"**/*.csv"``. Links are not followed by ``**``."""
        return map(self._face, self._iterate(lambda: self._inner.glob(pattern)))

    def rglob(self, pattern: str) -> Iterator[Self]:
        """The same at any depth."""
        return map(self._face, self._iterate(lambda: self._inner.rglob(pattern)))

    def stat(self, *, follow_symlinks: bool = True) -> FileInfo:
        return self._run(lambda: self._inner.stat(follow_symlinks=follow_symlinks))

    def exists(self) -> bool:
        """False for a link that leads nowhere in the workspace, too."""
        return self._run(self._inner.exists)

    def is_file(self) -> bool:
        return self._run(self._inner.is_file)

    def is_dir(self) -> bool:
        return self._run(self._inner.is_dir)

    def is_symlink(self) -> bool:
        return self._run(self._inner.is_symlink)

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        self._run(lambda: self._inner.mkdir(parents=parents, exist_ok=exist_ok))

    def rename(self, target: str | PureSandboxPath) -> Self:
        """Moves within the workspace, replacing a file; the new path. A text counts from the workspace."""
        return self._face(self._run(lambda: self._inner.rename(target)))

    def copy(self, target: SandboxPath, *, progress: Callable[[CopyProgress], None] | None = None) -> Copied:
        """Copies a file or a directory to ``target``, its name there, in this sandbox or another one.

        As `Sandbox.copy_to`, and all is sent. It passes through this process, a piece at a time.
        """
        there: Any = getattr(target, "_inner", target)
        return self._run(lambda: self._inner.copy(there, progress=progress))

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Removes a file or a link."""
        self._run(lambda: self._inner.unlink(missing_ok=missing_ok))

    def rmdir(self) -> None:
        """Removes an empty directory."""
        self._run(self._inner.rmdir)

    def rmtree(self) -> None:
        """Removes a directory with all that is in it, whoever made it."""
        self._run(self._inner.rmtree)

    def _face(self, inner: AsyncSandboxPath) -> Self:
        return type(self)(self._loop, inner)
