"""What can be said of a path in a sandbox without a look at its files: as `pathlib.PurePosixPath` says it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, NoReturn, Self

from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.types import WORKDIR


class PureSandboxPath(ABC):
    """A path in one sandbox's workspace, relative to it: ``str`` of it is what a command inside is given.

    It is no `os.PathLike`: functions that open files of this machine refuse it. `as_uri` is for those that take URLs.
    """

    def __init__(self, uid: str, id: str, path: PurePosixPath) -> None:
        self._uid = uid
        self._id = id
        self._path = path.relative_to(WORKDIR) if path.is_relative_to(WORKDIR) else path

    @abstractmethod
    def _at(self, path: PurePosixPath) -> Self:
        """Another path in the same sandbox."""

    def __str__(self) -> str:
        return str(self._path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({f'{self._id}:{self._path}'!r})"

    def __copy__(self) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be pickled: it belongs to this process; send {self.as_uri()!r}, for fsspec")

    def __hash__(self) -> int:
        return hash((self._uid, self._path))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PureSandboxPath):
            return NotImplemented
        return (self._uid, self._path) == (other._uid, other._path)

    def __lt__(self, other: PureSandboxPath) -> bool:
        return self._path < other._path if self._is_beside(other) else NotImplemented

    def __le__(self, other: PureSandboxPath) -> bool:
        return self._path <= other._path if self._is_beside(other) else NotImplemented

    def __gt__(self, other: PureSandboxPath) -> bool:
        return self._path > other._path if self._is_beside(other) else NotImplemented

    def __ge__(self, other: PureSandboxPath) -> bool:
        return self._path >= other._path if self._is_beside(other) else NotImplemented

    def __truediv__(self, other: str | PurePosixPath) -> Self:
        return self._at(self._path / other)

    def joinpath(self, *others: str | PurePosixPath) -> Self:
        return self._at(self._path.joinpath(*others))

    @property
    def name(self) -> str:
        return self._path.name

    @property
    def stem(self) -> str:
        return self._path.stem

    @property
    def suffix(self) -> str:
        return self._path.suffix

    @property
    def suffixes(self) -> Sequence[str]:
        return self._path.suffixes

    @property
    def parts(self) -> tuple[str, ...]:
        return self._path.parts

    @property
    def parent(self) -> Self:
        """The workspace itself is its own."""
        return self._at(self._path.parent)

    @property
    def parents(self) -> Sequence[Self]:
        return [self._at(path) for path in self._path.parents]

    def with_name(self, name: str) -> Self:
        return self._at(self._path.with_name(name))

    def with_stem(self, stem: str) -> Self:
        return self._at(self._path.with_stem(stem))

    def with_suffix(self, suffix: str) -> Self:
        return self._at(self._path.with_suffix(suffix))

    def match(self, pattern: str) -> bool:
        return self._path.match(pattern)

    def relative_to(self, other: str | PureSandboxPath) -> PurePosixPath:
        """The way from a directory to here. Raises `ValueError` where there is none."""
        return self._path.relative_to(workspace_path(other, self._uid))

    def is_relative_to(self, other: str | PureSandboxPath) -> bool:
        return self._path.is_relative_to(workspace_path(other, self._uid))

    def as_uri(self) -> str:
        """``sandbox://ID/path``, for pandas and all that reads through fsspec."""
        return f"sandbox://{self._id}/{self._path}" if self._path.name else f"sandbox://{self._id}"

    def _is_beside(self, other: object) -> bool:
        return isinstance(other, PureSandboxPath) and other._uid == self._uid


def workspace_path(path: Any, uid: str) -> str:
    """A path in the workspace of the sandbox ``uid``, as text.

    Raises `InvalidOptionError` for what is none, and for one of another sandbox.
    """
    if isinstance(path, PureSandboxPath):
        if path._uid != uid:
            raise InvalidOptionError(
                f"{path!r} is in another sandbox", hint="copy it over: copy_from and copy_to, %sandbox cp"
            )
        return str(path)
    if isinstance(path, str):
        return path
    raise InvalidOptionError(f"path={path!r} is not valid", hint="accepted: text, a path of this sandbox")
