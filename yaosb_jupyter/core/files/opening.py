"""``open`` of a path in a sandbox: what its arguments mean, and the file that they give."""

from __future__ import annotations

import errno
import io
import stat
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Literal

from yaosb_jupyter.core.files.rawfile import BinaryWriter, RawReader, RawWriter, Run, TextWriter
from yaosb_jupyter.core.files.reading import Reader
from yaosb_jupyter.core.files.writing import Writer
from yaosb_jupyter.errors import InvalidOptionError, PathNotFoundError
from yaosb_jupyter.tai.volumes.paths import path_error
from yaosb_jupyter.types import FileInfo

if TYPE_CHECKING:
    from yaosb_jupyter.core.files.workspace import Files

BUFFER = 1 << 20

TextMode = Literal["r", "rt", "tr", "w", "wt", "tw", "a", "at", "ta", "x", "xt", "tx"]
BinaryMode = Literal["rb", "br", "wb", "bw", "ab", "ba", "xb", "bx"]
_MODES = [sorted(action + kind) for action in "rwax" for kind in ("", "b", "t")]


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What is done (``r``, ``w``, ``a`` or ``x``), and how text is written; ``binary`` without."""

    action: str
    binary: bool
    encoding: str | None = None
    errors: str | None = None
    newline: str | None = None

    @classmethod
    def of(cls, mode: str, encoding: str | None, errors: str | None, newline: str | None) -> Opening:
        """Raises `InvalidOptionError`."""
        if not isinstance(mode, str) or sorted(mode) not in _MODES:
            raise InvalidOptionError(f"mode={mode!r} is not valid", hint="accepted: r, w, a or x, with b for bytes")
        action = mode.strip("bt")
        if "b" in mode:
            if any(value is not None for value in (encoding, errors, newline)):
                raise InvalidOptionError("encoding, errors and newline are for text", hint=f"mode={action!r}")
            return cls(action=action, binary=True)
        return cls(action=action, binary=False, encoding=encoding or "utf-8", errors=errors, newline=newline)

    @property
    def text(self) -> dict[str, Any]:
        return {"encoding": self.encoding, "errors": self.errors, "newline": self.newline}


async def open_file(files: Files, path: str, how: Opening, run: Run) -> IO[Any]:
    """The file, its work done by ``run``. Raises what keeps it from being opened."""
    if how.action == "r":
        return await _open_reader(files, path, how, run)
    there = await _look(files, path, how)
    size = there.size if there is not None and how.action == "a" else 0
    kept = files.stream(path, size=size) if size else None
    raw = RawWriter(path, Writer(lambda content: files.write(path, _after(kept, content)), size), run)
    return BinaryWriter(raw, BUFFER) if how.binary else TextWriter(raw, BUFFER, **how.text)


async def _open_reader(files: Files, path: str, how: Opening, run: Run) -> IO[Any]:
    async def size() -> int:
        return (await files.stat(path, follow=True)).size

    reader = Reader(lambda offset: files.stream(path, offset=offset))
    await reader.open()
    buffered = io.BufferedReader(RawReader(path, reader, size, run), BUFFER)
    return buffered if how.binary else io.TextIOWrapper(buffered, **how.text)


async def _look(files: Files, path: str, how: Opening) -> FileInfo | None:
    """The file that is there, if it may be written."""
    try:
        there = await files.stat(path, follow=True)
    except PathNotFoundError:
        return None
    if how.action == "x":
        raise path_error(errno.EEXIST, path, files.id)
    if there.is_dir or not stat.S_ISREG(there.mode):
        raise path_error(errno.EISDIR if there.is_dir else errno.ENXIO, path, files.id)
    return there


async def _after(kept: AsyncIterator[bytes] | None, content: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    if kept is not None:
        async for piece in kept:
            yield piece
    async for piece in content:
        yield piece
