"""Sizes and durations as people write them: ``"2g"``, ``"30m"``, ``timedelta``."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from yaosb_jupyter.errors import InvalidOptionError

_SIZE_ACCEPTED = 'bytes, or a number with k, m, g or t ("512m", "2g")'
_DURATION_ACCEPTED = (
    'seconds, a timedelta, or a number with ms, s, m, h or d ("90s", "30m"); 0 means never; up to 100 years'
)

_LONGEST = 100 * 365 * 86400.0  # times beyond it are no dates

SizeLike = int | str
DurationLike = float | int | str | timedelta

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", re.IGNORECASE)
_SIZE_FACTORS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_DURATION_FACTORS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_size(value: SizeLike, field: str = "size") -> int:
    """``value`` in bytes; letters are powers of 1024 as the Docker command line reads them.

    Raises `InvalidOptionError` naming ``field``.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise _bad(field, value, _SIZE_ACCEPTED)
    size = float(match[1]) * _SIZE_FACTORS[match[2].lower()]
    if math.isinf(size):
        raise _bad(field, value, _SIZE_ACCEPTED)
    return int(size)


def parse_duration(value: DurationLike, field: str = "duration") -> float:
    """``value`` in seconds, fractions kept; compound forms such as ``"1h30m"`` are accepted.

    Raises `InvalidOptionError` naming ``field`` for what is negative, too long or not understood.
    """
    seconds: float
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, str):
        seconds = _parse_duration_text(value, field)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value
    else:
        raise _bad(field, value, _DURATION_ACCEPTED)
    if not 0 <= seconds <= _LONGEST:
        raise _bad(field, value, _DURATION_ACCEPTED)
    return float(seconds)


def _parse_duration_text(text: str, field: str) -> float:
    compact = text.strip().lower().replace(" ", "")
    try:
        return float(compact)
    except ValueError:
        pass
    parts = _DURATION_PART.findall(compact)
    if not parts or "".join(number + unit for number, unit in parts) != compact:
        raise _bad(field, text, _DURATION_ACCEPTED)
    return sum(float(number) * _DURATION_FACTORS[unit] for number, unit in parts)


def format_size(size: int) -> str:
    """``size`` bytes for people: ``"1.5 GiB"``."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} TiB"


def format_duration(seconds: float) -> str:
    """``seconds`` for people: ``"450 ms"``, ``"12 s"``, ``"1 h 30 min"``, ``"3 d 4 h"``."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    parts = []
    for name, factor in units:
        count, whole = divmod(whole, factor)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


def _bad(field: str, value: object, accepted: str) -> InvalidOptionError:
    return InvalidOptionError(f"{field}={value!r} is not valid", hint=f"accepted: {accepted}")
