"""Which files are at both ends of a copy, so that they need not be sent.

What a sandbox tells of its files decides about copies of them and nothing else. Sending, we hold what it tells of the
target against our files: at worst it keeps what it had. Fetching, it learns which of the files that it offers are
here in just that form, at the paths that it names below the target; nothing is looked at beside those.
"""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

from yaosb_jupyter.errors import PathNotFoundError
from yaosb_jupyter.guest import records
from yaosb_jupyter.guest.confined import READ_DIRECTORY
from yaosb_jupyter.guest.manifest import Manifest, Stamp, below, decode_stamp, digest_of, encode_stamp, is_same
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.tai.volumes.paths import path_errors

_MISSING = -1
"""In place of the descriptor of a directory that is not here; what is looked for in it is not found."""


async def stamps_of(manifest: AsyncIterable[bytes], path: str) -> Mapping[str, Stamp]:
    """What a manifest tells, by path below its top; nothing where there is no such file."""
    found = Manifest()

    def take(data: bytes) -> None:
        with path_errors(path):
            for _ in found.feed(data):
                pass

    try:
        async with aclosing(cast(Any, manifest)) as pieces:
            async for data in pieces:
                await in_thread(take, data)
                if found.full:
                    break
    except PathNotFoundError:
        pass  # all is sent
    return found.stamps


class Comparison:
    """Takes the manifest of a source; what of it is below ``target`` here, too, is given as a manifest, and counted.

    No link below ``target`` is followed. To be closed.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._decoder = records.Decoder()
        self._paths: list[str] = []
        self._opened: list[int] = []
        self.same = 0

    def feed(self, data: bytes) -> Generator[bytes]:
        """In steps, most of which give nothing. Raises `RecordError`, `OSError`."""
        for record in self._decoder.feed(data):
            below(self._paths, record)
            if record.kind == records.ENTER:
                self._opened.append(self._open(record.name))
                yield records.encode(records.ENTER, record.name)
            elif record.kind == records.LEAVE:
                self._leave()
                yield records.encode(records.LEAVE)
            else:
                stamp = decode_stamp(record)
                if (yield from self._is_here(record.name, stamp)):
                    self.same += 1
                    yield encode_stamp(record.name, stamp._replace(digest=b""))

    def close(self) -> None:
        while self._opened:
            self._leave()

    def _leave(self) -> None:
        opened = self._opened.pop()
        if opened != _MISSING:
            os.close(opened)

    def _open(self, name: str) -> int:
        try:
            if not self._opened:
                return os.open(self._target, READ_DIRECTORY)
            return os.open(name, READ_DIRECTORY | os.O_NOFOLLOW, dir_fd=self._opened[-1])
        except OSError:
            return _MISSING

    def _is_here(self, name: str, stamp: Stamp) -> Generator[bytes, None, bool]:
        directory = self._opened[-1] if self._opened else None
        name = name or str(self._target)
        try:
            status = os.lstat(name, dir_fd=directory)
        except OSError:
            return False
        if not stat.S_ISREG(status.st_mode):
            return False
        return (yield from is_same(stamp, status, digest_of(directory, name)))


async def comparing(manifest: AsyncIterable[bytes], comparison: Comparison, path: str) -> AsyncGenerator[bytes]:
    """The part of a source's manifest that is here too."""

    def take(data: bytes) -> bytes:
        with path_errors(path):
            return b"".join(comparison.feed(data))

    try:
        async with aclosing(cast(Any, manifest)) as pieces:
            async for data in pieces:
                if same := await in_thread(take, data):
                    yield same
    finally:
        comparison.close()
