"""``sandbox://ID/path`` for fsspec, and so for pandas, polars, pyarrow and all that reads through it."""

from __future__ import annotations

import io
import os
import stat as stats
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from yaosb_jupyter.blocking.entry import manager
from yaosb_jupyter.blocking.path import SandboxPath
from yaosb_jupyter.blocking.sandbox import Sandbox
from yaosb_jupyter.core.files.opening import BUFFER
from yaosb_jupyter.errors import InvalidOptionError, NotFoundError, PathError, PathNotFoundError, missing_extra
from yaosb_jupyter.types import CopyProgress, FileInfo

try:
    from fsspec import AbstractFileSystem
    from fsspec.callbacks import DEFAULT_CALLBACK, Callback
    from fsspec.spec import AbstractBufferedFile
    from fsspec.utils import isfilelike
except ImportError as error:
    raise missing_extra("fsspec", "reading sandbox:// addresses") from error

Info = dict[str, Any]


class SandboxFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """The files of the sandboxes of this process's manager (`yaosb_jupyter.manager`): a path is ``ID/path``.

    Nothing is remembered between calls, neither lists nor content: what the sandbox writes is seen at once. Files are
    written as paths write them: streamed, and whole when they are closed.
    """

    protocol = "sandbox"
    root_marker = ""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "use_listings_cache": False})

    # What is there

    def info(self, path: str, **_: Any) -> Info:
        """Of what a link leads to; of the link itself where that is nowhere in its sandbox."""
        ref, inside = self._split(path)
        return self._told(ref, inside, self._path(path).stat(follow_symlinks=False)) if ref else _directory("")

    def ls(self, path: str, detail: bool = True, **_: Any) -> Sequence[Any]:
        ref, inside = self._split(path)
        found = list(self._list(ref, inside)) if ref else [_directory(info.id) for info in manager().list()]
        return found if detail else [each["name"] for each in found]

    def _list(self, ref: str, inside: str) -> Iterator[Info]:
        files = self._sandbox(ref).files
        if not (top := files.stat(inside, follow=True)).is_dir:
            yield _info(ref, inside, top)
            return
        for found in files.list(inside):
            yield self._told(ref, str(PurePosixPath(inside) / found.name), found)

    def _told(self, ref: str, inside: str, info: FileInfo) -> Info:
        if info.link_target is None:
            return _info(ref, inside, info)
        with suppress(PathNotFoundError, PathError):
            info = self._sandbox(ref).files.stat(inside, follow=True)
        return {**_info(ref, inside, info), "islink": True}

    def exists(self, path: str, **_: Any) -> bool:
        """False for a link that leads nowhere in its sandbox; see `lexists`."""
        return not self._split(path)[0] or self._is(path, SandboxPath.exists)

    def lexists(self, path: str, **_: Any) -> bool:
        return not self._split(path)[0] or self._is(path, lambda place: place.is_symlink() or place.exists())

    def isfile(self, path: str) -> bool:
        return bool(self._split(path)[0]) and self._is(path, SandboxPath.is_file)

    def isdir(self, path: str) -> bool:
        return not self._split(path)[0] or self._is(path, SandboxPath.is_dir)

    def _is(self, path: str, question: Callable[[SandboxPath], bool]) -> bool:
        """Where there is no such sandbox, and outside of it, nothing is anything."""
        try:
            return question(self._path(path))
        except (PathNotFoundError, PathError):
            return False

    def walk(
        self,
        path: str,
        maxdepth: int | None = None,
        topdown: bool = True,
        on_error: str | Callable[[OSError], object] = "omit",
        *,
        detail: bool = False,
        copied: bool = False,
        **_: Any,
    ) -> Iterator[tuple[str, Any, Any]]:
        """Links to directories are told as directories, and not followed, as `os.walk` does it.

        ``on_error`` is for directories that are gone or none by the time they are listed; all else is raised.
        ``copied``: without what copies leave out, which are special files and links that lead to no file.
        """
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        path = self._strip_protocol(path)
        if (listed := self._listed(path, on_error)) is None:
            return
        dirs: dict[str, Info] = {}
        files: dict[str, Info] = {}
        for info in listed:
            name = "" if info["name"] == path else info["name"].rpartition("/")[2]
            if not copied or _is_copied(info):
                (dirs if name and info["type"] == "directory" else files)[name] = info
        below = {name: info["name"] for name, info in dirs.items() if not info.get("islink")}
        told = (dirs, files) if detail else (list(dirs), list(files))
        if topdown:
            yield path, *told
        if maxdepth is None or maxdepth > 1:
            deeper = None if maxdepth is None else maxdepth - 1
            for name in told[0]:  # whoever walks may have taken some out
                if name in below:
                    yield from self.walk(below[name], deeper, topdown, on_error, detail=detail, copied=copied)
        if not topdown:
            yield path, *told

    def _listed(self, path: str, on_error: str | Callable[[OSError], object]) -> Sequence[Info] | None:
        try:
            return self.ls(path)
        except OSError as error:
            if ref := self._split(path)[0]:
                self._sandbox(ref)  # a sandbox that is gone is no empty directory
            if on_error == "raise":
                raise
            if callable(on_error):
                on_error(error)
            return None

    def expand_path(self, path: Any, recursive: bool = False, maxdepth: int | None = None, **options: Any) -> Any:
        return super().expand_path(path, recursive, maxdepth, **{"copied": recursive, **options})

    def modified(self, path: str) -> datetime:
        return datetime.fromtimestamp(self.info(path)["mtime"], UTC)

    def ukey(self, path: str) -> str:
        info = self.info(path)
        return f"{info['name']}-{info['size']}-{info['mtime']!r}"

    # Content

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: Any = None,
        autocommit: bool = True,
        cache_type: str | None = None,
        **options: Any,
    ) -> Any:
        """A file of the standard library: those of fsspec keep blocks, which may not be what is there any more.

        Whoever names a ``cache_type`` (``blockcache::``) wants just that, and gets one of fsspec's.
        """
        if not autocommit:
            raise InvalidOptionError("files in sandboxes know no transactions", hint="each is whole when it is closed")
        if cache_type is not None and mode == "rb":
            return _KeptFile(self, path, mode, block_size, autocommit, cache_type, **options)
        file = self._path(path).open(mode)  # type: ignore[call-overload]
        return _File(self, path, file.detach()) if mode == "rb" else file

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        ref, inside = self._split(path)
        files = self._sandbox(ref).files
        if min(start or 0, end or 0) < 0:  # from the end, as in slices
            begin, stop, _step = slice(start, end).indices(files.stat(inside, follow=True).size)
        else:
            begin, stop = start or 0, end  # type: ignore[assignment]
        return files.read(inside, offset=begin, size=None if stop is None else max(0, stop - begin))

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        with self._path(path).open("xb" if mode == "create" else "wb") as file:
            file.write(value)

    def touch(self, path: str, truncate: bool = True, **_: Any) -> None:
        with self._path(path).open("wb" if truncate else "ab"):
            pass

    def get_file(
        self, rpath: str, lpath: Any, callback: Callback = DEFAULT_CALLBACK, outfile: Any = None, **options: Any
    ) -> None:
        """The file here is whole from the first moment it is seen."""
        if outfile is not None or isfilelike(lpath) or self.isdir(rpath):
            super().get_file(rpath, lpath, callback=callback, outfile=outfile, **options)
            return
        ref, inside = self._split(rpath)

        def tell(step: CopyProgress) -> None:
            callback.set_size(step.total)
            callback.absolute_update(step.done)

        self._sandbox(ref).copy_from(inside, os.fspath(lpath), progress=tell)

    # Changes

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        self._path(path).mkdir(parents=create_parents)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        self._path(path).mkdir(parents=True, exist_ok=exist_ok)

    def rmdir(self, path: str) -> None:
        self._path(path).rmdir()

    def rm_file(self, path: str) -> None:
        self._path(path).unlink()

    def rm(self, path: str | Sequence[str], recursive: bool = False, maxdepth: int | None = None) -> None:
        if not recursive or maxdepth is not None:
            super().rm(path, recursive=recursive, maxdepth=maxdepth)
            return
        for each in self.expand_path(path):
            place = self._path(each)
            if place.stat(follow_symlinks=False).is_dir:
                place.rmtree()
            else:
                place.unlink()

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        """Through this process, a piece at a time; between sandboxes too."""
        if self.isdir(path1):
            self.makedirs(path2, exist_ok=True)
            return
        ref, inside = self._split(path1)
        content = self._sandbox(ref).files.stream(inside)
        ref, inside = self._split(path2)
        self._sandbox(ref).files.write(inside, content)

    # Whose

    def _split(self, path: str) -> tuple[str, str]:
        ref, _, inside = str(self._strip_protocol(path)).lstrip("/").partition("/")
        return ref, inside

    def _path(self, path: str) -> SandboxPath:
        ref, inside = self._split(path)
        if not ref:
            raise InvalidOptionError(f"{path!r} names no sandbox", hint="sandbox://ID/path")
        return self._sandbox(ref).files / inside

    def _sandbox(self, ref: str) -> Sandbox:
        try:
            return manager().get(ref)
        except NotFoundError as error:
            raise PathNotFoundError("there is no such sandbox", sandbox=ref, hint=error.hint) from error


class _File(io.BufferedReader):
    """A file to be read, with what users of fsspec ask of one besides."""

    def __init__(self, fs: SandboxFileSystem, path: str, raw: io.RawIOBase) -> None:
        super().__init__(raw, BUFFER)
        self.fs = fs
        self.path = path

    @property
    def size(self) -> int:
        """Bytes, as it is now."""
        return int(self.fs.size(self.path))

    @property
    def loc(self) -> int:
        return self.tell()


class _KeptFile(AbstractBufferedFile):  # type: ignore[misc]
    """fsspec's own, which keeps what it has read."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.fs.cat_file(self.path, start, end)  # type: ignore[no-any-return]


def _info(ref: str, inside: str, info: FileInfo) -> Info:
    """What fsspec's users read: names from the root on, without a ``/`` at their ends."""
    kind = "directory" if info.is_dir else "file" if stats.S_ISREG(info.mode) else "other"
    return {
        "name": f"{ref}/{inside}".rstrip("/"),
        "size": 0 if info.is_dir else info.size,
        "type": kind,
        "mode": info.mode,
        "mtime": info.mtime,
        "islink": info.link_target is not None,
    }


def _is_copied(info: Info) -> bool:
    return info["type"] == "file" or (info["type"] == "directory" and not info.get("islink"))


def _directory(name: str) -> Info:
    return {"name": name, "size": 0, "type": "directory"}
