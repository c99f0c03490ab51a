"""The files of a workspace that is a volume of the engine: its archive API, and our scripts for the rest.

The engine resolves paths within the container's root, so nothing here reaches a host's file. Links are followed by us,
one name at a time; a sandbox that swaps a directory in between reaches files of its own container only.
"""

from __future__ import annotations

import base64
import errno
import io
import json
import os
import posixpath
import stat as stats
import tarfile
import tempfile
import time
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import IO, Any, cast

from yaosb_jupyter.errors import NotFoundError, NotRunningError, PathError, RuntimeUnavailableError, SandboxError
from yaosb_jupyter.guest.confined import NEW_DIRECTORY_MODE
from yaosb_jupyter.guest.staging import NEW_FILE_MODE, temporary_name
from yaosb_jupyter.tai.runtimes.docker.archivetree import TELL_TIMES, ArchivedTree, times_told
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.environments import Environments
from yaosb_jupyter.tai.runtimes.docker.filescripts import LIST, MOVE, READ_LINK, REMOVE, failure, told_by_list
from yaosb_jupyter.tai.runtimes.docker.processes import run_script
from yaosb_jupyter.tai.runtimes.docker.tarstream import TarReader
from yaosb_jupyter.tai.runtimes.docker.throwaway import run_throwaway
from yaosb_jupyter.tai.threads import in_thread, to_the_end
from yaosb_jupyter.tai.volumes.comparison import stamps_of
from yaosb_jupyter.tai.volumes.each import FileByFile, SmallFile
from yaosb_jupyter.tai.volumes.paths import path_error, split_path, too_deep
from yaosb_jupyter.types import WORKDIR, FileInfo

_MAX_LINKS = 40
_MAX_NAMES = 255
"""More on a path the engine takes for links in a circle."""
_PIECE = 2**20
_SPOOL = 2**22
_GO_DIRECTORY, _GO_LINK, _GO_IRREGULAR = 1 << 31, 1 << 27, (1 << 25) | (1 << 24) | (1 << 21) | (1 << 26) | (1 << 19)


class ArchiveVolume(FileByFile):
    """A workspace in a named volume, whether the container runs or not."""

    def __init__(self, engine: Engine, environments: Environments, runtime_id: str) -> None:
        self._engine = engine
        self._environments = environments
        self._runtime_id = runtime_id

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> AsyncIterator[bytes]:
        names, info = await self._regular(_checked(path))
        target = self._target(names)
        left = info.size - offset if size is None else min(size, info.size - offset)
        async with self._engine.stream("GET", target, sandbox=self._runtime_id) as response:
            tar = TarReader(response.chunks())
            await tar.next_entry()
            async for piece in tar.content():
                if offset >= len(piece):
                    offset -= len(piece)
                    continue
                wanted = piece[offset:][: max(left, 0)]
                offset = 0
                left -= len(wanted)
                if wanted:
                    yield wanted
                if left <= 0:
                    return

    async def put(self, path: str, content: AsyncIterable[bytes], *, mode: int | None, mtime: int) -> FileInfo:
        """The content is kept in a temporary file first: the engine wants its size before it."""
        names = await self._follow(split_path(_checked(path)), final=True, missing=True)
        if not names:
            raise path_error(errno.EISDIR, path)
        old = await self._stat(names)
        if old is not None and not stats.S_ISREG(old.mode):
            raise path_error(errno.EISDIR if old.is_dir else errno.ENXIO, path)
        with tempfile.SpooledTemporaryFile(_SPOOL) as spool:  # in memory at first: nothing that blocks
            async for piece in content:
                await in_thread(spool.write, piece)
            if mode is None:
                mode = old.mode & 0o777 if old else NEW_FILE_MODE
            await self._put_file(names, spool, mode & 0o777, mtime)
        return await self.stat("/".join(names))

    async def _put_file(self, names: Sequence[str], spool: IO[bytes], mode: int, mtime: int) -> None:
        await self._make_directories(names[:-1])
        entry = await self._file_entry(spool.tell(), mode, mtime)
        spool.seek(0)

        async def archive() -> AsyncIterator[bytes]:
            yield entry.tobuf(tarfile.PAX_FORMAT)
            while piece := await in_thread(spool.read, _PIECE):
                yield piece
            yield bytes(-entry.size % 512 + 1024)

        await self._put_files(names[:-1], archive(), {entry.name: names[-1]})

    async def put_together(self, directory: str, files: Sequence[SmallFile]) -> None:
        """Those that are there already may be links, or no files, and are looked at one by one."""
        names = await self._follow(split_path(_checked(directory)), final=True, missing=True)
        await self._make_directories(names)
        told = await self._told(names)
        there = {file.name for file in files} if told is None else {name for name, _ in told}
        placed: dict[str, str] = {}
        content = bytearray()
        for file in files:
            path = _checked("/".join((*names, file.name)))
            if file.name in there:
                await self.put(path, _piece(file.content), mode=file.mode, mtime=file.mtime)
                continue
            entry = await self._file_entry(len(file.content), file.mode, file.mtime)
            placed[entry.name] = file.name
            content += entry.tobuf(tarfile.PAX_FORMAT) + file.content + bytes(-entry.size % 512)
        if placed:
            await self._put_files(names, _piece(bytes(content) + bytes(1024)), placed)

    async def _put_files(self, names: Sequence[str], archive: AsyncIterator[bytes], placed: Mapping[str, str]) -> None:
        """Into a directory, under temporary names, and then under those that ``placed`` tells."""
        pairs = [((*names, temporary), (*names, name)) for temporary, name in placed.items()]
        try:
            await self._put(names, archive)
            await self._script(MOVE, *chain.from_iterable(pairs))
        except BaseException:
            with suppress(SandboxError):  # what went wrong first is told
                await to_the_end(self._remove(*(temporary for temporary, _ in pairs)))
            raise

    async def manifest(self, source: str, *, checksum: bool = False) -> AsyncIterator[bytes]:  # noqa: ARG002 - always
        async with self._archived(source) as tree, aclosing(cast(Any, tree.manifest())) as told:
            async for record in told:
                yield record

    async def pack(self, source: str, there: AsyncIterable[bytes] | None = None) -> AsyncIterator[bytes]:
        stamps = {} if there is None else await stamps_of(there, source)
        async with self._archived(source) as tree, aclosing(cast(Any, tree.packed(stamps))) as packed:
            async for record in packed:
                yield record

    @asynccontextmanager
    async def _archived(self, source: str) -> AsyncIterator[ArchivedTree]:
        names = await self._follow(split_path(_checked(source)), final=True)
        info = await self._stat(names)
        if info is None:
            raise path_error(errno.ENOENT, source)
        if not info.is_dir and not stats.S_ISREG(info.mode):
            raise path_error(errno.ENXIO, source)
        times = await self._times(names)
        async with self._engine.stream("GET", self._target(names), sandbox=self._runtime_id) as response:
            yield ArchivedTree(TarReader(response.chunks()), times, lambda path: self.read("/".join((*names, path))))

    async def _times(self, names: Sequence[str]) -> Mapping[str, int]:
        """Of the files there, by their paths below it: archives tell whole seconds only."""
        return times_told(await self._script(TELL_TIMES, names), posixpath.join(WORKDIR, *names))

    async def stat(self, path: str, *, follow: bool = False) -> FileInfo:
        asked = split_path(path)
        names = await self._follow(asked, final=follow)
        info = await self._stat(names)
        if info is None:
            raise path_error(errno.ENOENT, path)
        info = replace(info, name=asked[-1] if asked else "", path="/".join(asked))
        return info if info.link_target is None else replace(info, link_target=await self._link_target(names))

    async def list(self, path: str = "") -> Sequence[FileInfo]:
        names: Sequence[str] = split_path(path)
        told = await self._told(names)
        if told is None:  # links are on the way, or it is none
            names = await self._follow(names, final=True)
            info = await self._stat(names)
            if info is None or not info.is_dir:
                raise path_error(errno.ENOENT if info is None else errno.ENOTDIR, path)
            told = await self._told(names)
        if told is None:
            raise path_error(errno.EACCES, path)
        found = []
        for name, target in told:
            each = await self._stat((*names, name))
            if each is not None:
                found.append(each if each.link_target is None else replace(each, link_target=target))
        return sorted(found, key=lambda each: each.name)

    async def _told(self, names: Sequence[str]) -> Sequence[tuple[str, str]] | None:
        """The names in a directory, with the targets of links; None where that is not just there."""
        return told_by_list(await self._script(LIST, names), posixpath.join(WORKDIR, *names))

    async def mkdir(self, path: str) -> None:
        await self.put_directory(path, mode=NEW_DIRECTORY_MODE)

    async def put_directory(self, path: str, *, mode: int) -> None:
        await self._make_directories(await self._follow(split_path(path), final=True, missing=True), mode | 0o700)

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        names = await self._follow(split_path(path), final=False)
        if not names:
            raise PathError("the workspace itself cannot be removed", hint="remove the sandbox")
        info = await self._stat(names)
        if info is None:
            raise path_error(errno.ENOENT, path)
        if info.is_dir and not recursive and await self.list("/".join(names)):
            raise path_error(errno.ENOTEMPTY, path)
        await self._remove(names)

    async def _remove(self, *paths: Sequence[str]) -> None:
        try:
            await self._script(REMOVE, *paths)
        except PathError:  # another user left something there
            await self._beside(REMOVE, [posixpath.join(WORKDIR, *names) for names in paths])

    async def rename(self, source: str, target: str) -> None:
        old = await self._follow(split_path(source), final=False)
        new = await self._follow(split_path(target), final=False, missing=True)
        if not old or not new:
            raise PathError("the workspace itself cannot be renamed")
        info = await self._stat(old)
        if info is None:
            raise path_error(errno.ENOENT, source)
        if new[: len(old)] == old and new != old:
            raise path_error(errno.EINVAL, target)
        if await self._stat(new[:-1]) is None:
            raise path_error(errno.ENOENT, target)
        there = await self._stat(new)
        if there is not None and there.is_dir != info.is_dir:
            raise path_error(errno.EISDIR if there.is_dir else errno.ENOTDIR, target)
        await self._script(MOVE, old, new)

    async def _regular(self, path: str) -> tuple[Sequence[str], FileInfo]:
        names = await self._follow(split_path(path), final=True)
        info = await self._stat(names)
        if info is None:
            raise path_error(errno.ENOENT, path)
        if not stats.S_ISREG(info.mode):
            raise path_error(errno.EISDIR if info.is_dir else errno.ENXIO, path)
        return names, info

    async def _follow(self, names: Sequence[str], *, final: bool, missing: bool = False) -> tuple[str, ...]:
        """The names without links; the last one's own is followed only if ``final``, and may be ``missing``."""
        asked = "/".join(names)
        done: list[str] = []
        todo = list(names)
        links = 0
        while todo:
            name = todo.pop(0)
            info = await self._stat((*done, name))
            if info is None:
                if missing:
                    return (*done, name, *todo)
                raise path_error(errno.ENOENT, asked)
            if info.link_target is None or (not todo and not final):
                if todo and not info.is_dir:
                    raise path_error(errno.ENOTDIR, asked)
                done.append(name)
                continue
            links += 1
            if links > _MAX_LINKS:
                raise path_error(errno.ELOOP, asked)
            try:
                todo = [*split_path(posixpath.join(WORKDIR, *done, info.link_target)), *todo]
            except PathError as error:
                raise path_error(errno.EXDEV, asked) from error
            done = []
        return tuple(done)

    async def _stat(self, names: Sequence[str]) -> FileInfo | None:
        if len(names) > _MAX_NAMES:
            raise too_deep("/".join(names), _MAX_NAMES)
        try:
            async with self._engine.stream("HEAD", self._target(names), sandbox=self._runtime_id) as response:
                header = response.headers["x-docker-container-path-stat"]
        except NotFoundError:
            if names:
                return None
            raise
        except RuntimeUnavailableError:  # it does not say why: a link that the engine followed in vain may be why
            target = await self._link_target(names)
            if not target:
                raise
            mode = stats.S_IFLNK | 0o777
            return FileInfo(
                name=names[-1], path="/".join(names), size=0, mode=mode, mtime=0.0, is_dir=False, link_target=target
            )
        return parse_stat(header, names)

    async def _link_target(self, names: Sequence[str]) -> str:
        """As it was written: the engine tells where it leads. Empty for what is no link."""
        return (await self._script(READ_LINK, names)).decode(errors="surrogateescape")

    async def _make_directories(self, names: Sequence[str], mode: int = NEW_DIRECTORY_MODE) -> None:
        """The last with ``mode``, where it is made."""
        for count in range(1, len(names) + 1):
            info = await self._stat(names[:count])
            if info is None:
                await self._put_directories(names[: count - 1], names[count - 1 :], mode)
                return
            if not info.is_dir:
                raise path_error(errno.ENOTDIR, "/".join(names[:count]))

    async def _put_directories(self, below: Sequence[str], names: Sequence[str], mode: int) -> None:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for count in range(1, len(names) + 1):
                entry = await self._entry("/".join(names[:count]), mode if count == len(names) else NEW_DIRECTORY_MODE)
                entry.type = tarfile.DIRTYPE
                tar.addfile(entry)

        async def archive() -> AsyncIterator[bytes]:
            yield buffer.getvalue()

        await self._put(below, archive())

    async def _put(self, names: Sequence[str], archive: AsyncIterator[bytes]) -> None:
        target = self._target(names, noOverwriteDirNonDir="true")
        headers = {"Content-Type": "application/x-tar"}
        async with self._engine.stream(
            "PUT", target, sandbox=self._runtime_id, headers=headers, body=archive
        ) as response:
            await response.text()

    async def _script(self, script: str, *paths: Sequence[str]) -> bytes:
        """Runs in the container where that runs, else beside it."""
        arguments = [_checked(posixpath.join(WORKDIR, *names)) for names in paths]
        try:
            code, output, said = await run_script(self._engine, self._runtime_id, script, arguments)
        except NotRunningError:
            return await self._beside(script, arguments)
        if code:
            raise failure("/".join(paths[-1]), said)
        return output

    async def _beside(self, script: str, arguments: Sequence[str]) -> bytes:
        """Runs as one who may do all, in a throwaway container that has the workspace too."""
        host = await self._environments.get(self._runtime_id)
        argv = ["sh", "-c", script, "yaosb-files", *arguments]
        config = {"VolumesFrom": [self._runtime_id], "CapAdd": ["DAC_OVERRIDE", "FOWNER"]}
        _, output = await run_throwaway(self._engine, host.image, argv, host_config=config)
        return output

    async def _entry(self, name: str, mode: int) -> tarfile.TarInfo:
        """Of the sandbox's user, made now."""
        host = await self._environments.get(self._runtime_id)
        entry = tarfile.TarInfo(name)
        entry.uid, entry.gid, entry.mode, entry.mtime = host.uid, host.gid, mode, int(time.time())
        return entry

    async def _file_entry(self, size: int, mode: int, mtime: int) -> tarfile.TarInfo:
        """Under a temporary name."""
        entry = await self._entry(temporary_name(), mode & 0o777)
        entry.size = size
        entry.pax_headers = {"mtime": f"{max(mtime, 0) // 10**9}.{max(mtime, 0) % 10**9:09}"}
        return entry

    def _target(self, names: Sequence[str], **query: str) -> str:
        path = posixpath.join(WORKDIR, *names)
        return self._engine.target("containers", self._runtime_id, "archive", path=path, **query)


async def _piece(data: bytes) -> AsyncIterator[bytes]:
    yield data


def _checked(path: str) -> str:
    """Raises `PathError` for what the engine takes for another name."""
    if path.encode(errors="replace") != os.fsencode(path):
        raise PathError(f"{path!r} is not UTF-8, and cannot be told to the engine", hint="give it another name inside")
    return path


def parse_stat(header: str, names: Sequence[str]) -> FileInfo:
    """The engine's header about a path; its mode bits are Go's."""
    found = json.loads(base64.b64decode(header))
    mode = int(found["mode"])
    kind = stats.S_IFREG
    if mode & _GO_DIRECTORY:
        kind = stats.S_IFDIR
    elif mode & _GO_LINK:
        kind = stats.S_IFLNK
    elif mode & _GO_IRREGULAR:
        kind = stats.S_IFIFO
    modified = datetime.fromisoformat(found["mtime"])
    return FileInfo(
        name=names[-1] if names else "",
        path="/".join(names),
        size=int(found["size"]) if kind == stats.S_IFREG else 0,
        mode=kind | (mode & 0o777),
        mtime=modified.timestamp(),
        is_dir=kind == stats.S_IFDIR,
        link_target=found["linkTarget"] if kind == stats.S_IFLNK else None,
    )
