"""`AsyncSandboxPath`: a path in a sandbox, with what `pathlib.Path` can do."""

from __future__ import annotations

import errno
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Self, overload

from yaosb_jupyter.core.files.asyncfile import AsyncFile, Threaded
from yaosb_jupyter.core.files.globbing import Glob
from yaosb_jupyter.core.files.opening import BinaryMode, Opening, TextMode, open_file
from yaosb_jupyter.core.files.purepath import PureSandboxPath, workspace_path
from yaosb_jupyter.errors import InvalidOptionError, PathError, PathLinkError, PathNotDirectoryError, PathNotFoundError
from yaosb_jupyter.tai.volumes.between import copy_between
from yaosb_jupyter.tai.volumes.paths import path_error
from yaosb_jupyter.types import Copied, CopyProgress, FileInfo

if TYPE_CHECKING:
    from yaosb_jupyter.core.files.workspace import Files


class AsyncSandboxPath(PureSandboxPath):
    """Made by ``sandbox.files / "data" / "x.csv"``. Each call is use of the sandbox while it lasts.

    Raises `PathNotFoundError`, `PathExistsError`, `PathIsDirectoryError` and `PathNotDirectoryError`, each of which is
    Python's own error of that name too, `PathLinkError` for a link that leads out of the workspace or in a circle, and
    `PathError` for what leaves the workspace by its name or is neither file nor directory.
    """

    def __init__(self, files: Files, path: PurePosixPath) -> None:
        super().__init__(files.uid, files.id, path)
        self._files = files

    def _at(self, path: PurePosixPath) -> Self:
        return type(self)(self._files, path)

    @overload
    async def open(
        self,
        mode: TextMode = "r",
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> AsyncFile[str]: ...

    @overload
    async def open(
        self, mode: BinaryMode, *, encoding: None = None, errors: None = None, newline: None = None
    ) -> AsyncFile[bytes]: ...

    async def open(
        self, mode: str = "r", *, encoding: str | None = None, errors: str | None = None, newline: str | None = None
    ) -> AsyncFile[Any]:
        """For ``async with await path.open(...) as file``: text in UTF-8 unless told otherwise, or ``"rb"`` and so on.

        Reading goes anywhere by ``seek``. What is written is streamed, its directories made, and appears under its name
        when the file is closed; left by an exception, the old file stays. ``a`` writes the file anew with what was
        there; whether one is there already, ``x`` looks when it is opened.
        """
        run = Threaded()
        how = Opening.of(mode, encoding, errors, newline)
        return AsyncFile(await open_file(self._files, str(self), how, run), run)

    async def read_bytes(self) -> bytes:
        return await self._files.read(str(self))

    async def read_text(
        self, encoding: str | None = None, errors: str | None = None, newline: str | None = None
    ) -> str:
        """UTF-8 unless told otherwise."""
        async with await self.open(encoding=encoding, errors=errors, newline=newline) as file:
            return await file.read()

    async def write_bytes(self, data: bytes) -> int:
        """Replaces the file at once, its directories made; the number of bytes."""
        return (await self._files.write(str(self), data)).size

    async def write_text(
        self, data: str, encoding: str | None = None, errors: str | None = None, newline: str | None = None
    ) -> int:
        """The same in UTF-8 unless told otherwise; the number of characters."""
        async with await self.open("w", encoding=encoding, errors=errors, newline=newline) as file:
            return await file.write(data)

    async def iterdir(self) -> AsyncIterator[Self]:
        """What is in the directory, by name."""
        for info in await self._files.list(str(self)):
            yield self / info.name

    async def glob(self, pattern: str) -> AsyncIterator[Self]:
        """What a pattern means below here, by name: ``"*.csv"``, ``"**/*.csv"``. Links are not followed by ``**``."""
        async for path in Glob(self._files.list, pattern).below(self._path):
            yield self._at(path)

    async def rglob(self, pattern: str) -> AsyncIterator[Self]:
        """The same at any depth."""
        async for path in self.glob(f"**/{pattern}"):
            yield path

    async def stat(self, *, follow_symlinks: bool = True) -> FileInfo:
        return await self._files.stat(str(self), follow=follow_symlinks)

    async def exists(self) -> bool:
        """False for a link that leads nowhere in the workspace, too."""
        return await self._look() is not None

    async def is_file(self) -> bool:
        info = await self._look()
        return info is not None and stat.S_ISREG(info.mode)

    async def is_dir(self) -> bool:
        info = await self._look()
        return info is not None and info.is_dir

    async def is_symlink(self) -> bool:
        info = await self._look(follow=False)
        return info is not None and info.link_target is not None

    async def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        there = await self._look()
        if there is not None and not (exist_ok and there.is_dir):
            raise path_error(errno.EEXIST, str(self), self._id)
        if not parents:
            await self.parent._need_directory()
        await self._files.mkdir(str(self))

    async def rename(self, target: str | PureSandboxPath) -> Self:
        """Moves within the workspace, replacing a file; the new path. A text counts from the workspace."""
        place = workspace_path(target, self._uid)
        await self._files.rename(str(self), place)
        return self._at(PurePosixPath(place))

    async def copy(self, target: AsyncSandboxPath, *, progress: Callable[[CopyProgress], None] | None = None) -> Copied:
        """Copies a file or a directory to ``target``, its name there, in this sandbox or another one.

        As `AsyncSandbox.copy_to`, and all is sent. It passes through this process, a piece at a time.
        """
        if not isinstance(target, AsyncSandboxPath):
            raise InvalidOptionError(f"target={target!r} is not valid", hint="accepted: a path in a sandbox")
        if target._uid == self._uid and target._path.is_relative_to(self._path):
            raise PathError(f"{str(self)!r} cannot be copied onto or into itself", sandbox=self._id)
        source, there = self._files._volume(), target._files._volume()
        return await copy_between(source, str(self), there, str(target), progress)

    async def unlink(self, *, missing_ok: bool = False) -> None:
        """Removes a file or a link."""
        there = await self._look(follow=False)
        if there is None and missing_ok:
            return
        if there is not None and there.is_dir:
            raise path_error(errno.EISDIR, str(self), self._id)
        await self._files.remove(str(self))

    async def rmdir(self) -> None:
        """Removes an empty directory."""
        await self._need_directory(follow=False)
        await self._files.remove(str(self))

    async def rmtree(self) -> None:
        """Removes a directory with all that is in it, whoever made it."""
        await self._need_directory(follow=False)
        await self._files.remove(str(self), recursive=True)

    async def _look(self, *, follow: bool = True) -> FileInfo | None:
        try:
            return await self._files.stat(str(self), follow=follow)
        except (PathNotFoundError, PathNotDirectoryError, PathLinkError):
            return None

    async def _need_directory(self, *, follow: bool = True) -> None:
        if not (await self._files.stat(str(self), follow=follow)).is_dir:
            raise path_error(errno.ENOTDIR, str(self), self._id)
