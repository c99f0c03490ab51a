"""Files and directories into and out of a workspace, as ``cp -r`` would place them."""

from __future__ import annotations

import asyncio
import os
import posixpath
import stat
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from yaosb_jupyter.core.workspace import Files
from yaosb_jupyter.errors import NotFoundError, PathError
from yaosb_jupyter.types import WORKDIR, FileInfo

_PIECE = 2**20


@dataclass(frozen=True, kw_only=True)
class CopyProgress:
    """How far a copy is: bytes of all bytes, and the file it is at."""

    path: str
    done: int
    total: int


Report = Callable[[CopyProgress], None]


@dataclass(kw_only=True)
class Copied:
    """What was copied. ``skipped``: links and special files, which are not followed out of a tree."""

    target: str
    files: int = 0
    size: int = 0
    skipped: list[str] = field(default_factory=list)


async def upload(workspace: Files, source: Path, target: str, report: Report) -> Copied:
    """Copies a file or directory of this machine to ``target``, or into it where it is a directory.

    Raises `NotFoundError`, `PathError`.
    """
    tree = await asyncio.to_thread(_local_tree, source)
    root = await _remote_target(workspace, source.name or "files", target)
    copied = Copied(target=root, skipped=tree.skipped)
    for relative in tree.directories:
        await workspace.mkdir(posixpath.join(root, relative) if relative else root)
    for relative, path, mode in tree.files:

        def tell(size: int, path: Path = path) -> None:
            copied.size += size
            report(CopyProgress(path=str(path), done=copied.size, total=tree.size))

        place = posixpath.join(root, relative) if relative else root
        await workspace.write(place, _pieces(path, tell), mode=mode)
        copied.files += 1
    return copied


async def download(workspace: Files, source: str, target: Path, report: Report) -> Copied:
    """Copies a file or directory of the workspace to ``target``, or into it where it is a directory.

    A file appears under its name when it is complete. Raises `NotFoundError`, `PathError`, `OSError`.
    """
    top = await _remote_kind(workspace, source)
    name = top.name if _is_workspace(source) else posixpath.basename(posixpath.normpath(source))
    root = target / _checked(name) if await asyncio.to_thread(target.is_dir) else target
    copied = Copied(target=str(root))
    found = [("", top)] if not top.is_dir else [item async for item in _walk(workspace, source)]
    total = sum(info.size for _, info in found if stat.S_ISREG(info.mode))
    if top.is_dir:
        await asyncio.to_thread(root.mkdir, parents=True, exist_ok=True)
    for relative, info in found:
        if info.is_dir:
            await asyncio.to_thread((root / relative).mkdir, exist_ok=True)
        elif not relative or stat.S_ISREG(info.mode):
            place = posixpath.join(source, relative) if relative else source
            async with _appearing(root / relative if relative else root, info.mode) as file:
                async for piece in workspace.stream(place):
                    await asyncio.to_thread(file.write, piece)
                    copied.size += len(piece)
                    report(CopyProgress(path=place, done=copied.size, total=total))
            copied.files += 1
        else:
            copied.skipped.append(relative)
    return copied


@dataclass(kw_only=True)
class _Tree:
    directories: list[str] = field(default_factory=list)
    files: list[tuple[str, Path, int]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, relative: str, path: Path, info: os.stat_result) -> None:
        if stat.S_ISREG(info.st_mode):
            self.files.append((relative, path, stat.S_IMODE(info.st_mode) & 0o777))
            self.size += info.st_size
        else:
            self.skipped.append(relative or str(path))


def _local_tree(source: Path) -> _Tree:
    tree = _Tree()
    try:
        top = source.stat()
    except FileNotFoundError:
        raise NotFoundError(f"no file {str(source)!r} here", hint="for a path in a sandbox write NAME:path") from None
    if not stat.S_ISDIR(top.st_mode):
        tree.add("", source, top)
        if tree.skipped:
            raise PathError(f"{str(source)!r} is neither a file nor a directory")
        return tree
    for relative, path in _local_walk(source):
        info = path.lstat()
        if stat.S_ISDIR(info.st_mode):
            tree.directories.append(relative)
        else:
            tree.add(relative, path, info)
    tree.directories.insert(0, "")
    return tree


def _local_walk(source: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(source.rglob("*")):
        yield path.relative_to(source).as_posix(), path


async def _remote_target(workspace: Files, name: str, target: str) -> str:
    if _is_workspace(target):
        return name
    if target.endswith("/"):
        return posixpath.join(target, name)
    try:
        info = await workspace.stat(target)
    except NotFoundError:
        return target
    return posixpath.join(target, name) if info.is_dir else target


async def _remote_kind(workspace: Files, source: str) -> FileInfo:
    if _is_workspace(source):
        return FileInfo(name="workspace", path="", size=0, mode=stat.S_IFDIR | 0o755, mtime=0, is_dir=True)
    return await workspace.stat(source)


def _is_workspace(path: str) -> bool:
    return posixpath.normpath(path) in (".", WORKDIR)


async def _walk(workspace: Files, root: str) -> AsyncIterator[tuple[str, FileInfo]]:
    """Everything below ``root``, directories before what is in them; links are not followed."""
    pending = [""]
    while pending:
        relative = pending.pop()
        for info in await workspace.list(posixpath.join(root, relative) if relative else root):
            path = posixpath.join(relative, _checked(info.name))
            yield path, info
            if info.is_dir and info.link_target is None:
                pending.append(path)


def _checked(name: str) -> str:
    """A name that a sandbox chose, refused where it would leave the directory it is written to."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise PathError(f"the sandbox has a file of the impossible name {name!r}")
    return name


async def _pieces(path: Path, tell: Callable[[int], None]) -> AsyncIterator[bytes]:
    file: IO[bytes] = await asyncio.to_thread(path.open, "rb")
    try:
        while piece := await asyncio.to_thread(file.read, _PIECE):
            yield piece
            tell(len(piece))
    finally:
        file.close()


@asynccontextmanager
async def _appearing(path: Path, mode: int) -> AsyncIterator[IO[bytes]]:
    """A file to write, which takes its name when the block has ended well."""
    descriptor, name = await asyncio.to_thread(tempfile.mkstemp, prefix=".part-", dir=path.parent)
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        await asyncio.to_thread(_finish, part, path, mode)
    except BaseException:
        await asyncio.shield(asyncio.to_thread(part.unlink, missing_ok=True))
        raise


def _finish(part: Path, path: Path, mode: int) -> None:
    part.chmod((mode & 0o777) | 0o600)
    part.replace(path)
