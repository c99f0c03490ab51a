"""``cp``: files and directories between this machine and sandboxes, placed as ``cp -r`` places them."""

from __future__ import annotations

import asyncio
import glob
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from yaosb_jupyter.core.files.globbing import Glob, is_pattern
from yaosb_jupyter.core.files.path import AsyncSandboxPath
from yaosb_jupyter.core.files.places import Place
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import InvalidOptionError, PathNotDirectoryError, PathNotFoundError
from yaosb_jupyter.tai.volumes.limits import MAX_SIZE
from yaosb_jupyter.types import WORKDIR, Copied, CopyProgress
from yaosb_jupyter.units import SizeLike

Find = Callable[[str], Awaitable[AsyncSandbox]]
"""The sandbox of that name; of none, the one in use."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """How far a copy of several sources is: what is copied now, as ``number`` of ``count``."""

    source: str
    number: int
    count: int
    progress: CopyProgress


@dataclass(frozen=True, kw_only=True)
class Done:
    """One source was copied: both ends as people write them."""

    source: str
    target: str
    copied: Copied


@dataclass(frozen=True, kw_only=True)
class CopyOptions:
    """See `AsyncSandbox.copy_to` and `copy_from`."""

    checksum: bool = False
    max_size: SizeLike = MAX_SIZE


class Side(ABC):
    """This machine or one sandbox, as an end of copies."""

    @abstractmethod
    async def meant(self, text: str) -> Sequence[str]:
        """The paths that are meant: that itself where it is there, else what matches it. Empty where nothing does."""

    @abstractmethod
    async def is_directory(self, path: str) -> bool: ...

    @abstractmethod
    def name_of(self, path: str) -> str:
        """What a copy is called where it is put into a directory."""

    @abstractmethod
    def told(self, path: str) -> str:
        """The path, for people."""


class Here(Side):
    """This machine."""

    async def meant(self, text: str) -> Sequence[str]:
        path = _here(text)
        if await asyncio.to_thread(path.exists):
            return [str(path)]
        return sorted(await asyncio.to_thread(glob.glob, str(path), recursive=True)) if is_pattern(text) else []

    async def is_directory(self, path: str) -> bool:
        return await asyncio.to_thread(_here(path).is_dir)

    def name_of(self, path: str) -> str:
        return Path(path).name or "files"

    def told(self, path: str) -> str:
        return path


class Inside(Side):
    """A sandbox."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self.sandbox = sandbox

    def path(self, text: str) -> AsyncSandboxPath:
        return self.sandbox.files / text

    async def meant(self, text: str) -> Sequence[str]:
        path = self.path(text)
        if is_pattern(text) and not await path.exists():
            found = Glob(self.sandbox.files.list, str(path), hidden=False).below(PurePosixPath())
            return [str(each) async for each in found]
        try:
            await path.stat()
        except (PathNotFoundError, PathNotDirectoryError):
            return []
        return [str(path)]

    async def is_directory(self, path: str) -> bool:
        return await self.path(path).is_dir()

    def name_of(self, path: str) -> str:
        name = posixpath.basename(posixpath.normpath(path))
        return WORKDIR.strip("/") if name in ("", ".", "..") else name

    def told(self, path: str) -> str:
        return f"{self.sandbox.id}:{'' if path == '.' else path}"


def _here(text: str) -> Path:
    return Path(text).expanduser()


class Copies:
    """Copies sources to one target; ``report`` is told each step, on the loop."""

    def __init__(self, find: Find, report: Callable[[Step], None], options: CopyOptions) -> None:
        self._find = find
        self._report = report
        self._options = options

    async def run(self, sources: Sequence[Place], target: Place) -> Sequence[Done]:
        """What was copied, by source; each file is seen when it is whole, whatever happens meanwhile.

        Raises `PathNotFoundError`, `PathNotDirectoryError`, `InvalidOptionError`, and what copies raise.
        """
        if target.ref is None and any(source.ref is None for source in sources):
            raise InvalidOptionError(
                "one end of a copy is in a sandbox", hint="write NAME:path for that, :path for the one in use"
            )
        there = await self._side(target)
        found = [(side, path) for source in sources for side, path in await self._meant(source)]
        into = target.path.endswith("/") or await there.is_directory(target.path)
        if len(found) > 1 and not into:
            raise PathNotDirectoryError(
                f"{there.told(target.path)!r} is no directory, and takes one file only",
                hint="end it with / to make one",
            )
        done = []
        for number, (side, path) in enumerate(found, 1):
            place = posixpath.join(target.path, side.name_of(path)) if into else target.path
            told = side.told(path)

            def report(progress: CopyProgress, told: str = told, number: int = number) -> None:
                self._report(Step(source=told, number=number, count=len(found), progress=progress))

            copied = await self._copy(side, path, there, place, report)
            done.append(Done(source=told, target=there.told(copied.target), copied=copied))
        return done

    async def _side(self, place: Place) -> Side:
        return Here() if place.ref is None else Inside(await self._find(place.ref))

    async def _meant(self, place: Place) -> Sequence[tuple[Side, str]]:
        side = await self._side(place)
        found = await side.meant(place.path)
        if not found:
            what = "nothing matches" if is_pattern(place.path) else "no such file:"
            hint = (
                "for a path in a sandbox write NAME:path"
                if place.ref is None
                else "list its directory to see what is there"
            )
            raise PathNotFoundError(f"{what} {side.told(place.path)!r}", hint=hint)
        return [(side, path) for path in found]

    async def _copy(
        self, side: Side, path: str, there: Side, place: str, report: Callable[[CopyProgress], None]
    ) -> Copied:
        checksum = self._options.checksum
        if isinstance(side, Inside) and isinstance(there, Inside):
            return await side.path(path).copy(there.path(place), progress=report)
        if isinstance(there, Inside):
            return await there.sandbox.copy_to(path, there.path(place), checksum=checksum, progress=report)
        assert isinstance(side, Inside)  # one end is
        return await side.sandbox.copy_from(
            side.path(path),
            _here(place),
            checksum=checksum,
            progress=report,
            max_size=self._options.max_size,
        )
