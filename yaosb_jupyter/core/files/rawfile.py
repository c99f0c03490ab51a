"""Files of a workspace as the standard library's raw files, which buffers and text are layered on.

Their work is done on a loop, by a `Run` that waits for it in the thread that reads or writes.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from yaosb_jupyter.core.files.reading import Reader
from yaosb_jupyter.core.files.writing import Writer

T = TypeVar("T")


class Run(Protocol):
    """Does work on the loop while this thread waits."""

    def __call__(self, work: Callable[[], Awaitable[T]], /) -> T: ...


class RawReader(io.RawIOBase):
    """``size`` tells how long the file is now."""

    mode = "rb"

    def __init__(self, name: str, reader: Reader, size: Callable[[], Awaitable[int]], run: Run) -> None:
        self.name = name
        self._reader = reader
        self._size = size
        self._run = run

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        data = self._run(lambda: self._reader.read(len(view)))
        view[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        whole = bytearray()
        while data := self._run(lambda: self._reader.read(1 << 30)):
            whole += data
        return bytes(whole)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_CUR:
            offset += self._reader.position
        elif whence == os.SEEK_END:
            offset += self._run(self._size)
        if offset < 0:
            raise ValueError(f"negative seek position {offset}")
        self._reader.position = offset
        return offset

    def tell(self) -> int:
        return self._reader.position

    def close(self) -> None:
        if not self.closed:
            self._reader.let_go()
        super().close()


class RawWriter(io.RawIOBase):
    """What was abandoned takes whatever is written to it, and nothing comes of it."""

    mode = "wb"

    def __init__(self, name: str, writer: Writer, run: Run) -> None:
        self.name = name
        self._writer = writer
        self._run = run
        self._start = writer.position
        self._abandoned = False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        """While nothing was written: text asks, and looks then whether the file begins, for its encoding's mark."""
        return self._writer.position == self._start

    def write(self, data: Any) -> int:
        piece = bytes(data)
        if piece and not self._abandoned:
            try:
                self._run(lambda: self._writer.write(piece))
            except BaseException:
                self.abandon()
                raise
        return len(piece)

    def tell(self) -> int:
        return self._writer.position

    def close(self) -> None:
        try:
            if not self.closed and not self._abandoned:
                self._run(self._writer.close)
        finally:
            super().close()

    def abandon(self) -> None:
        """Leaves the old file as it is, without waiting."""
        self._abandoned = True
        self._writer.abandon()

    def discard(self) -> None:
        """`abandon`, and nothing of it is left when this returns."""
        self.abandon()
        self._run(self._writer.ended)


class BinaryWriter(io.BufferedWriter):
    """Leaves the old file where its ``with`` is left by an exception, and where nobody closes it."""

    def __init__(self, raw: RawWriter, size: int) -> None:
        super().__init__(raw, size)
        self._replacing = raw

    def __exit__(self, *exc: Any) -> None:
        if exc[0] is not None:
            self._replacing.discard()
        super().__exit__(*exc)

    def __del__(self) -> None:
        forsake(self, self._replacing)


class TextWriter(io.TextIOWrapper):
    """The same, for text."""

    def __init__(self, raw: RawWriter, size: int, **text: Any) -> None:
        super().__init__(io.BufferedWriter(raw, size), **text)
        self._replacing = raw

    def __exit__(self, *exc: Any) -> None:
        if exc[0] is not None:
            self._replacing.discard()
        super().__exit__(*exc)

    def __del__(self) -> None:
        forsake(self, self._replacing)


def forsake(file: io.IOBase, raw: RawWriter) -> None:
    """A file that was not closed when its last user forgot it may lack its end: it is not taken for a whole one."""
    if not file.closed:
        raw.abandon()
        file.close()
        warnings.warn(f"{raw.name!r} was not closed: what was written to it is dropped", ResourceWarning, stacklevel=2)
