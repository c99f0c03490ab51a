"""Paths as ``%sandbox cp`` and its kin write them: here, or in a sandbox."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from yaosb_jupyter.errors import InvalidOptionError

_REMOTE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)?:(.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A path in the sandbox ``ref`` (``""``: the one in use), or on this machine where ``ref`` is None."""

    ref: str | None
    path: str

    @property
    def here(self) -> Path:
        """The path on this machine, ``~`` replaced."""
        return Path(self.path).expanduser()

    @classmethod
    def parse(cls, text: str) -> Place:
        """``NAME:path``, ``:path``, else a path here; ``./a:b`` and ``/a:b`` are paths here."""
        match = _REMOTE.fullmatch(text)
        return cls(ref=match[1] or "", path=match[2]) if match else cls(ref=None, path=text)

    @classmethod
    def inside(cls, text: str) -> Place:
        """As `parse`, for what is always in a sandbox: a bare path is in the one in use."""
        place = cls.parse(text)
        return place if place.ref is not None else cls(ref="", path=text)


def direction(source: str, target: str) -> tuple[Place, Place]:
    """Both ends of a copy, one of them in a sandbox. Raises `InvalidOptionError`."""
    ends = Place.parse(source), Place.parse(target)
    if (ends[0].ref is None) == (ends[1].ref is None):
        raise InvalidOptionError(
            "one of both paths is in a sandbox, the other one here",
            hint="write NAME:path for the sandbox's, :path for the one in use",
        )
    return ends
