"""Volumes over a workspace that the test holds in its hands, as whoever is in the sandbox does."""

from __future__ import annotations

import asyncio
import ctypes
import os
import posixpath
import socket
import stat
import tempfile
import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.contract.box import pieces
from tests.guest.rig import guest
from tests.rig.require import require
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.tai.volumes.each import FileByFile, SmallFile
from yaosb_jupyter.tai.volumes.link import LinkVolume
from yaosb_jupyter.tai.volumes.local import LocalVolume
from yaosb_jupyter.tai.volumes.paths import path_errors, split_path
from yaosb_jupyter.types import FileInfo

MIB = 2**20
SECRET = b"of the host"


@dataclass(frozen=True, kw_only=True)
class Rig:
    """A volume, and the processes that hold files for it.

    ``sandbox`` is its name in errors; ``host_paths``: whether the workspace is known by its path on this host, too.
    """

    volume: Volume
    pids: tuple[int, ...]
    sandbox: str = "box"
    host_paths: bool = True


@asynccontextmanager
async def linked(workspace: Path, **options: Any) -> AsyncIterator[Rig]:
    """Through the link to a guest, a plain process of this machine."""
    with tempfile.TemporaryDirectory(prefix="yaosb-guest-") as place:
        async with guest(Path(place), workdir=str(workspace), **options) as running:
            await running.link.connected(20)
            volume = LinkVolume(lambda: running.link.connected(10), sandbox="box")
            yield Rig(volume=volume, pids=(os.getpid(), running.process.pid))


class StreamedVolume(LocalVolume):
    """Copies trees as a client of the daemon does: as a stream."""

    opened = Volume.opened
    staged = Volume.staged
    push = Volume.push
    pull = Volume.pull


class EachVolume(FileByFile, LocalVolume):
    """Copies trees file by file."""

    push = Volume.push
    pull = Volume.pull

    async def put(self, path: str, content: AsyncIterable[bytes], *, mode: int | None, mtime: int) -> FileInfo:
        info = await LocalVolume.write(self, path, content, mode=mode)
        await asyncio.to_thread(self._set_time, path, mtime)
        return info

    async def put_together(self, directory: str, files: Sequence[SmallFile]) -> None:
        for file in files:
            await self.put(posixpath.join(directory, file.name), pieces(file.content), mode=file.mode, mtime=file.mtime)

    async def put_directory(self, path: str, *, mode: int) -> None:
        await asyncio.to_thread(self._make_directory, split_path(path), mode)

    def _make_directory(self, names: tuple[str, ...], mode: int) -> None:
        with path_errors("/".join(names)):
            try:
                self._files.stat(names)
                there = True
            except FileNotFoundError:
                there = False
            fd = self._files.make_directory(names)
            if not there:
                Path(f"/proc/self/fd/{fd}").chmod(mode | 0o700)
            os.close(fd)

    def _set_time(self, path: str, mtime: int) -> None:
        with path_errors(path):
            fd, _ = self._files.open_file(split_path(path))
        os.utime(fd, ns=(mtime, mtime))
        os.close(fd)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


async def read(volume: Volume, path: str, **part: int) -> bytes:
    return b"".join([piece async for piece in volume.read(path, **part)])


async def write(volume: Volume, path: str, data: bytes, mode: int | None = None) -> Any:
    return await volume.write(path, pieces(data), mode=mode)


def all_calls(volume: Volume, path: str) -> list[Callable[[], Any]]:
    """Everything that can be done with a path."""
    return [
        lambda: read(volume, path),
        lambda: write(volume, path, b"planted"),
        lambda: volume.stat(path),
        lambda: volume.list(path),
        lambda: volume.mkdir(path),
        lambda: volume.remove(path, recursive=True),
        lambda: volume.rename(path, "stolen"),
    ]


NAMES = [
    "plain.txt",
    "with space",
    " leading and trailing ",
    "new\nline",
    "quote'\"`$x;|&*?[]{}~\\",
    "naïve",
    "日本語",
    "🐍",
    "e\u0301",
    "\u202egnp.exe",
    "-rf",
    "...",
    "..hidden",
    "x" * 255,
    "not-utf8-\udcff",
]


@contextmanager
def swapping(path: Path, outside: Path) -> Iterator[None]:
    """Someone inside who swaps a directory with a link out of the workspace, as fast as possible."""
    link, stop = path.with_name("swapped"), threading.Event()
    link.symlink_to(outside)
    exchange, here, both = 2, -100, (os.fsencode(path), os.fsencode(link))  # RENAME_EXCHANGE, AT_FDCWD
    libc = ctypes.CDLL(None, use_errno=True)

    def swap() -> None:
        while not stop.is_set():
            assert libc.renameat2(here, both[0], here, both[1], exchange) == 0, os.strerror(ctypes.get_errno())

    attacker = threading.Thread(target=swap)
    attacker.start()
    try:
        yield
    finally:
        stop.set()
        attacker.join()


def descriptors_into(directory: Path, pids: tuple[int, ...]) -> list[str]:
    found = []
    for pid in pids:
        for path in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                target = str(path.readlink())
                if target.startswith(str(directory)):
                    found.append(target)
    return found


def plant(kind: str, path: Path) -> Any:
    if kind == "FIFO":
        return os.mkfifo(path)
    if kind == "socket":
        bound = socket.socket(socket.AF_UNIX)
        here = os.open(path.parent, os.O_PATH)
        bound.bind(f"/proc/self/fd/{here}/{path.name}")  # its own path may be too long for a socket
        os.close(here)
        return bound.close()
    require("root")
    return os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))


def tree_of(top: Path) -> dict[str, tuple[int, bytes | None]]:
    """Modes and contents, by path."""
    return {
        str(path.relative_to(top)): (stat.S_IMODE(path.lstat().st_mode), path.read_bytes() if path.is_file() else None)
        for path in top.rglob("*")
    }


def make_tree(top: Path) -> dict[str, tuple[int, bytes | None]]:
    """A tree with a bit of everything, and what it is."""
    (top / "sub/deeper/empty").mkdir(parents=True)
    for number, name in enumerate(NAMES):
        (top / "sub" / name).write_bytes(b"%d" % number)
    (top / "nothing").write_bytes(b"")
    (top / "big").write_bytes(os.urandom(3 * MIB + 7))
    (top / "sub/run.sh").write_text("#!/bin/sh\n")
    (top / "sub/run.sh").chmod(0o755)
    (top / "sub/private").write_text("p")
    (top / "sub/private").chmod(0o400)
    return tree_of(top)
