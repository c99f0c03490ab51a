"""Patterns of paths: which files of a workspace they mean."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import PurePosixPath

from yaosb_jupyter.errors import InvalidOptionError, PathError, PathLinkError, PathNotDirectoryError, PathNotFoundError
from yaosb_jupyter.types import FileInfo

List = Callable[[str], Awaitable[Sequence[FileInfo]]]

_ANY_DEPTH = "**"
_MAGIC = re.compile(r"[*?[]")


def is_pattern(text: str) -> bool:
    return _MAGIC.search(text) is not None


def literally(text: str) -> str:
    """The pattern that means the path ``text`` itself."""
    return _MAGIC.sub(lambda found: f"[{found[0]}]", text)


class Glob:
    """``*``, ``?`` and ``[...]`` within a name, ``**`` for directories of any depth, in order and each once.

    Links to directories are followed where they are named or matched, not by ``**``. ``hidden``: whether names that
    start with a dot are meant where the pattern has no dot there. Raises `PathError` where a pattern leads out.
    """

    def __init__(self, list_directory: List, pattern: str, *, hidden: bool = True) -> None:
        names = PurePosixPath(pattern).parts if isinstance(pattern, str) else ()
        if not names or names[0] == "/":
            raise InvalidOptionError(f"pattern={pattern!r} is not valid", hint='accepted: "*.csv", "data/**/*.csv"')
        self._list_directory = list_directory
        self._names = names
        self._hidden = hidden
        self._listed: dict[PurePosixPath, Sequence[FileInfo]] = {}

    async def below(self, top: PurePosixPath) -> AsyncIterator[PurePosixPath]:
        """What is meant below a directory."""
        found = set()
        async for path in self._expand(top, self._names):
            if path not in found:
                found.add(path)
                yield path

    async def _expand(self, above: PurePosixPath, names: Sequence[str]) -> AsyncIterator[PurePosixPath]:
        if not names:
            yield above
        elif names[0] == _ANY_DEPTH:
            async for directory in self._directories(above):
                async for path in self._expand(directory, names[1:] or ["*"]):
                    yield path
        elif names[0] == "..":
            if not above.parts:
                raise PathError("the pattern leads out of the workspace", hint="accepted: patterns below it")
            async for path in self._expand(above.parent, names[1:]):
                yield path
        else:
            async for path in self._matching(above, names):
                yield path

    async def _matching(self, above: PurePosixPath, names: Sequence[str]) -> AsyncIterator[PurePosixPath]:
        for info in await self._list(above):
            if self._means(names[0], info.name):
                async for path in self._expand(above / info.name, names[1:]):
                    yield path

    async def _directories(self, top: PurePosixPath) -> AsyncIterator[PurePosixPath]:
        yield top
        for info in await self._list(top):
            if info.is_dir and (self._hidden or not info.name.startswith(".")):
                async for directory in self._directories(top / info.name):
                    yield directory

    def _means(self, pattern: str, name: str) -> bool:
        if not self._hidden and name.startswith(".") and not pattern.startswith("."):
            return False
        return fnmatch.fnmatchcase(name, pattern)

    async def _list(self, directory: PurePosixPath) -> Sequence[FileInfo]:
        """Each is asked for once; what is none has nothing in it."""
        if directory not in self._listed:
            try:
                self._listed[directory] = await self._list_directory(str(directory))
            except (PathNotFoundError, PathNotDirectoryError, PathLinkError):
                self._listed[directory] = ()
        return self._listed[directory]
