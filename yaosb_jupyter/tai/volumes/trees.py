"""Copying trees: the end at this machine, and blocking steps taken in threads."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator
from contextlib import aclosing
from pathlib import Path

from yaosb_jupyter.guest.confined import READ, READ_DIRECTORY, file_or_directory
from yaosb_jupyter.guest.packing import Packer
from yaosb_jupyter.guest.staging import StagedFile, mode_of_replaced
from yaosb_jupyter.guest.unpacking import Unpacker
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.tai.volumes.paths import path_errors
from yaosb_jupyter.types import Copied, CopyProgress

_SLICE = 0.05

Steps = Generator[bytes, None, None]
Report = Callable[[CopyProgress], None]


class Here:
    """The destination ``path`` on this machine: that itself is as its user wants it, links and all."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def directory(self) -> int:
        self._path.mkdir(parents=True, exist_ok=True)
        return os.open(self._path, READ_DIRECTORY)

    def file(self, mode: int) -> StagedFile:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        parent = os.open(self._path.parent, READ_DIRECTORY)
        try:
            mode_of_replaced(parent, self._path.name)
            staged = StagedFile(os.dup(parent), self._path.name)
        finally:
            os.close(parent)
        os.fchmod(staged.fd, mode)
        return staged

    def give(self, fd: int) -> None:
        """What is made here is ours."""

    def make_one(self, directory: int, name: str, mode: int) -> None:
        try:
            os.mkdir(name, mode, dir_fd=directory)
        except FileExistsError:
            pass  # filled, if it is a directory: the next open finds out


def pack_here(path: Path) -> Packer:
    """Of a file or directory of this machine."""
    return Packer(lambda: file_or_directory(os.open(path, READ)))


def packing(packer: Packer, path: str, sandbox: str = "") -> Steps:
    """The steps of a packer, with our errors."""
    with path_errors(path, sandbox):
        yield from packer.steps()


async def unpacking(
    unpacker: Unpacker, records: AsyncIterable[bytes], path: str, sandbox: str = ""
) -> AsyncGenerator[None]:
    """Feeds an unpacker to the end, and closes it; a step now and then, to tell how far it is."""
    try:
        async for data in records:
            async with aclosing(in_slices(_feeding(unpacker, data, path, sandbox))) as slices:
                async for _ in slices:
                    yield
            yield
        with path_errors(path, sandbox):
            unpacker.finish()
    finally:
        await in_thread(unpacker.close)


async def copy_directly(packer: Packer, source: str, unpacker: Unpacker, target: str, tell: Report | None) -> Copied:
    """From one end to the other, both at this machine."""

    def steps() -> Steps:
        try:
            for piece in packing(packer, source):
                yield from _feeding(unpacker, piece, target, "")
            with path_errors(target):
                unpacker.finish()
        finally:
            unpacker.close()

    async with aclosing(in_slices(steps())) as slices:
        async for _ in slices:
            if tell is not None:
                tell(progress_of(packer))
    if tell is not None:
        tell(progress_of(packer))
    return copied(packer, target)


def _feeding(unpacker: Unpacker, data: bytes, path: str, sandbox: str) -> Steps:
    with path_errors(path, sandbox):
        for _ in unpacker.feed(data):
            yield b""


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


def progress_of(end: Packer | Unpacker) -> CopyProgress:
    return CopyProgress(path=end.path, done=end.done, total=max(end.total, end.done))


def copied(end: Packer | Unpacker, target: str) -> Copied:
    return Copied(target=target, files=end.files, size=end.done, skipped=tuple(end.skipped))
