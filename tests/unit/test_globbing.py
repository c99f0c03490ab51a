"""What a search passes over, and what it raises."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

import pytest

from yaosb_jupyter.core.files.globbing import Glob
from yaosb_jupyter.errors import (
    NotFoundError,
    PathError,
    PathLinkError,
    PathNotDirectoryError,
    PathNotFoundError,
    SandboxError,
    SandboxLostError,
    UnavailableError,
)
from yaosb_jupyter.types import FileInfo


def lists(error: SandboxError) -> Glob:
    """A search through a workspace in which one directory, ``b``, cannot be listed."""

    async def listed(path: str) -> Sequence[FileInfo]:
        if path == "b":
            raise error
        names = "abc" if path == "." else ""
        return [FileInfo(name=name, path=name, size=0, mode=0o40755, mtime=0, is_dir=True) for name in names]

    return Glob(listed, "**/*")


@pytest.mark.parametrize("kind", [PathNotFoundError, PathNotDirectoryError, PathLinkError])
async def test_what_is_gone_meanwhile_is_passed_over(kind: type[SandboxError]) -> None:
    assert [str(path) async for path in lists(kind("changed")).below(PurePosixPath())] == ["a", "b", "c"]


@pytest.mark.parametrize("kind", [SandboxLostError, NotFoundError, UnavailableError, PathError])
async def test_what_ends_a_search_is_raised(kind: type[SandboxError]) -> None:
    with pytest.raises(kind, match="broke"):
        _ = [path async for path in lists(kind("broke")).below(PurePosixPath())]
