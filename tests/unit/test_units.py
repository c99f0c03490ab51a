from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.units import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), (512, 512), ("512m", 512 * 2**20), ("2g", 2**31), ("1.5GiB", 3 * 2**29), ("4 KB", 4096), ("1t", 2**40)],
)
def test_sizes(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("value", ["", "g", "-1", "1x", "1g2m", -1, True, "nan"])
def test_bad_sizes(value: str | int) -> None:
    with pytest.raises(InvalidOptionError, match="memory="):
        parse_size(value, "memory")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(0, 0), (1, 1), (0.25, 0.25), ("90", 90), ("90s", 90), ("250ms", 0.25), ("1h30m", 5400), ("1 h 30 m", 5400),
     ("2d", 172800), (timedelta(minutes=1), 60)],
)  # fmt: skip
def test_durations(value: object, seconds: float) -> None:
    assert parse_duration(value) == pytest.approx(seconds)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value", ["", "m", "-1", -0.5, "1y", "1h-30m", float("nan"), float("inf"), True, timedelta(-1)]
)
def test_m17_bad_durations(value: object) -> None:
    with pytest.raises(InvalidOptionError, match="timeout="):
        parse_duration(value, "timeout")  # type: ignore[arg-type]


@given(st.floats(0, 1e9))
def test_m17_fractions_are_kept(seconds: float) -> None:
    assert parse_duration(seconds) == seconds
    assert parse_duration(repr(seconds)) == seconds


def test_formats() -> None:
    assert format_size(1536 * 2**20) == "1.5 GiB"
    assert format_size(10) == "10 B"
    assert format_duration(0.45) == "450 ms"
    assert format_duration(5400) == "1 h 30 min"
    assert format_duration(273600) == "3 d 4 h"
