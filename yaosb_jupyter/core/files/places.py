"""Paths as people write them in ``cp`` and its kin: here, or in a sandbox."""

from __future__ import annotations

import re
from dataclasses import dataclass

_REMOTE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)?:(.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A path in the sandbox ``ref`` (``""``: the one in use), or on this machine where ``ref`` is None."""

    ref: str | None
    path: str

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
