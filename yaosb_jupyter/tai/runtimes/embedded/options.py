"""The options of an embedded pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from yaosb_jupyter.errors import InvalidOptionError

DEFAULT_UID_RANGE = "200000-265535"


class Means(StrEnum):
    """What keeps a sandbox in, the strongest first."""

    BUBBLEWRAP = "bubblewrap"
    BUBBLEWRAP_OUTER_PROC = "bubblewrap-outer-proc"
    LANDLOCK = "landlock"
    PLAIN = "plain"

    @property
    def has_namespaces(self) -> bool:
        """Files, network and names are the sandbox's own."""
        return self in (Means.BUBBLEWRAP, Means.BUBBLEWRAP_OUTER_PROC)

    @property
    def contains_processes(self) -> bool:
        """They are numbered by themselves, and the kernel ends all with the first."""
        return self is Means.BUBBLEWRAP


@dataclass(frozen=True, kw_only=True)
class EmbeddedOptions:
    """``means`` may be tried, in order; ``uids`` are the first and last of the users that a root daemon gives out."""

    means: tuple[Means, ...]
    uids: tuple[int, int]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """``plain=yes`` allows no isolation where nothing better works; ``means`` names the only one to try;
        ``uid_range`` is ``FIRST-LAST``. Raises `InvalidOptionError`."""
        unknown = sorted(set(options) - {"plain", "means", "uid_range"})
        if unknown:
            raise InvalidOptionError(f"unknown option {unknown[0]!r}", hint="accepted: plain, means, uid_range")
        means: tuple[Means, ...] = tuple(kind for kind in Means if kind is not Means.PLAIN)
        if _yes(options.get("plain", "no")):
            means = (*means, Means.PLAIN)
        if named := options.get("means"):
            means = _only(named, means)
        return cls(means=means, uids=_uid_range(options.get("uid_range") or DEFAULT_UID_RANGE))


def _yes(value: str) -> bool:
    if value not in ("yes", "no"):
        raise InvalidOptionError(f"plain={value!r} is not valid", hint="accepted: yes, no")
    return value == "yes"


def _only(named: str, allowed: tuple[Means, ...]) -> tuple[Means, ...]:
    chosen = tuple(kind for kind in Means if kind.value == named)
    if not chosen:
        raise InvalidOptionError(f"means={named!r} is not valid", hint="accepted: " + ", ".join(Means))
    if chosen[0] not in allowed:
        raise InvalidOptionError("means=plain is no isolation", hint="give plain=yes too, if that is meant")
    return chosen


def _uid_range(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    if not (first.isdigit() and last.isdigit() and 0 < int(first) <= int(last) < 2**32 - 2):
        raise InvalidOptionError(f"uid_range={text!r} is not valid", hint="accepted: FIRST-LAST, both above 0")
    return int(first), int(last)
