"""The version of the package, and which of two is newer."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("yaosb-jupyter")
except PackageNotFoundError:  # run from a checkout that is not installed
    __version__ = "0"


def is_newer(one: str, other: str) -> bool:
    """Whether ``one`` came after ``other``; a release comes after its own pre-releases."""
    return _key(one) > _key(other)


def _key(text: str) -> tuple[tuple[int, ...], bool, tuple[int, ...]]:
    release = re.match(r"\d+(?:\.\d+)*", text)
    numbers = [int(part) for part in release[0].split(".")] if release else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    rest = text[release.end() :] if release else text
    return tuple(numbers), not rest, tuple(int(part) for part in re.findall(r"\d+", rest))
