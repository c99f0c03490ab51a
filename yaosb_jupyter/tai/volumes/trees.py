"""Copying trees: the end at this machine, and blocking steps taken in threads."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from yaosb_jupyter.guest.confined import READ, READ_DIRECTORY, file_or_directory
from yaosb_jupyter.guest.manifest import Stamp
from yaosb_jupyter.guest.packing import Packer
from yaosb_jupyter.guest.staging import StagedDirectory, StagedFile, mode_of_replaced
from yaosb_jupyter.guest.unpacking import Unpacker
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.tai.volumes.limits import CopyLimits
from yaosb_jupyter.tai.volumes.paths import path_errors
from yaosb_jupyter.types import Copied, CopyProgress

_SLICE = 0.05

Steps = Generator[bytes, None, None]
Report = Callable[[CopyProgress], None]


class Here:
    """The destination ``path`` on this machine: that itself is as its user wants it, links and all.

    A sandbox's directories may be anyone's to write to; whose they are here, our umask says, as for ``cp -r``.
    """

    exact = False

    def __init__(self, path: Path) -> None:
        self._path = path

    def directory(self) -> int:
        return os.open(self._path, READ_DIRECTORY)

    def new_directory(self, mode: int) -> StagedDirectory:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        return StagedDirectory(os.open(self._path.parent, READ_DIRECTORY), self._path.name, mode)

    def file(self, mode: int) -> StagedFile:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        parent = os.open(self._path.parent, READ_DIRECTORY)
        try:
            mode_of_replaced(parent, self._path.name)
            return StagedFile(os.dup(parent), self._path.name, mode)
        finally:
            os.close(parent)

    def give(self, fd: int, status: os.stat_result) -> None:
        """What is made here is ours."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """What is packed, and how errors name it."""

    packer: Packer
    path: str
    sandbox: str = ""

    def steps(self) -> Steps:
        return told_of(self.packer.steps(), self.path, self.sandbox)


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is unpacked into, and how errors name it."""

    unpacker: Unpacker
    path: str
    sandbox: str = ""
    limits: CopyLimits | None = None

    def feed(self, data: bytes) -> Steps:
        with path_errors(self.path, self.sandbox):
            here = self.unpacker
            for _ in here.feed(data):
                if self.limits is not None:
                    self.limits.check(max(here.total, here.done), max(here.coming, here.entries))
                yield b""

    def finish(self) -> None:
        with path_errors(self.path, self.sandbox):
            self.unpacker.finish()


def told_of(steps: Iterator[bytes], path: str, sandbox: str = "") -> Steps:
    """The same steps, their errors told as those of ``path``."""
    with path_errors(path, sandbox):
        yield from steps


def source_here(path: Path, there: Mapping[str, Stamp], *, measured: bool) -> Source:
    """A file or directory of this machine, without the files that are as ``there`` tells; see `Packer`."""

    def open_top() -> int:
        return file_or_directory(os.open(path, READ))

    return Source(packer=Packer(open_top, there, measured=measured), path=str(path))


def target_here(path: Path, limits: CopyLimits | None = None) -> Target:
    return Target(unpacker=Unpacker(Here(path)), path=str(path), limits=limits)


async def unpacking(target: Target, records: AsyncIterable[bytes]) -> AsyncGenerator[None]:
    """Feeds an unpacker to the end, and closes it; a step now and then, to tell how far it is."""
    try:
        async for data in records:
            async with aclosing(in_slices(target.feed(data))) as slices:
                async for _ in slices:
                    yield
            yield
        target.finish()
    finally:
        await in_thread(target.unpacker.close)


async def copy_directly(source: Source, target: Target, tell: Report | None) -> Copied:
    """From one end to the other, both at this machine."""

    def steps() -> Steps:
        try:
            for piece in source.steps():
                yield from target.feed(piece) if piece else (piece,)
            target.finish()
        finally:
            target.unpacker.close()

    async with aclosing(in_slices(steps())) as slices:
        async for _ in slices:
            if tell is not None:
                tell(progress_of(source.packer))
    if tell is not None:
        tell(progress_of(source.packer))
    return copied(source.packer, target.path, source.packer.unchanged)


async def in_slices(steps: Steps) -> AsyncGenerator[bytes]:
    """What blocking steps give, taken in a thread; empty where nothing came for a moment. To be exhausted or closed."""

    def take() -> bytes | None:
        until = time.monotonic() + _SLICE
        for item in steps:
            if item or time.monotonic() > until:
                return item
        return None

    try:
        while (item := await in_thread(take)) is not None:
            yield item
    finally:
        await in_thread(steps.close)


class Count(Protocol):
    """What each end of a copy knows of it."""

    path: str
    files: int
    done: int
    total: int
    skipped: list[str]


def progress_of(end: Count) -> CopyProgress:
    return CopyProgress(path=end.path, done=end.done, total=max(end.total, end.done), files=end.files)


def copied(end: Count, target: str, unchanged: int) -> Copied:
    left_out = (path for path in end.skipped if path or not unchanged)  # a file alone that is there is left out too
    return Copied(target=target, files=end.files, size=end.done, unchanged=unchanged, skipped=tuple(left_out))
