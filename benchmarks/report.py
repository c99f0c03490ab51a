"""The one table."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.harness import Row, Series, Verdict, judge, ratio

HEADER = ("operation", "by", "median", "p95", "n", "x first", "must reach")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A row with what was measured."""

    row: Row
    series: dict[str, Series]

    @property
    def verdicts(self) -> Sequence[Verdict]:
        return [judge(target, self.series) for target in self.row.targets]


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds < 0.1 else f"{seconds * 1e3:.0f} ms"


def mebibytes(size: float) -> str:
    return f"{size / 2**20:.1f} MiB"


def percent(share: float) -> str:
    return f"{share * 100:.3f} %"


def rate(work: float, unit: str) -> Callable[[float], str]:
    """Renders seconds as ``work`` a second."""
    return lambda seconds: f"{work / seconds:.0f} {unit}/s"


def table(measured: Iterable[Measured]) -> str:
    """Markdown, its columns aligned for the terminal."""
    lines = [HEADER, *(line for item in measured for line in _lines(item))]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )


def _lines(item: Measured) -> Iterable[tuple[str, ...]]:
    first = next(iter(item.series.values()))
    for index, series in enumerate(item.series.values()):
        title = item.row.title if index == 0 else ""
        if series.absent:
            yield (title, series.name, series.absent, "", "", "", _must(item, series.name))
            continue
        times = None if first.absent else ratio(series, first)
        yield (
            title,
            series.name,
            item.row.show(series.median),
            item.row.show(series.p95),
            str(len(series.samples)),
            "" if times is None else f"{times:.2f}",
            _must(item, series.name),
        )


def _must(item: Measured, name: str) -> str:
    return "; ".join(_told(item.row, verdict) for verdict in item.verdicts if verdict.target.subject == name)


def _told(row: Row, verdict: Verdict) -> str:
    target = verdict.target
    if target.against:
        sign, bound = ("<=", target.at_most) if target.at_least is None else (">=", target.at_least)
        speed = "" if target.at_least is None else "the speed of "
        what, value = f"{sign} {bound:g} x {speed}{target.against}", f"{verdict.value or 0:.2f}"
        aim = f" (aim {target.aim:g})" if target.aim is not None else ""
    else:
        what, value, aim = f"<= {row.show(target.at_most or 0)}", row.show(verdict.value or 0), ""
    if verdict.met is None:
        return f"{what}{aim}: not measured"
    return f"{what}{aim}: {value} {'ok' if verdict.met else 'MISSED'}"


def summary(measured: Sequence[Measured]) -> str:
    """One line: how many targets were met."""
    verdicts = [verdict for item in measured for verdict in item.verdicts]
    met = sum(verdict.met is True for verdict in verdicts)
    missed = sum(verdict.met is False for verdict in verdicts)
    return f"{len(verdicts)} targets: {met} met, {missed} missed, {len(verdicts) - met - missed} not measured"


def machine() -> str:
    """The machine by its core count, with the versions that matter."""
    return f"{os.cpu_count()} cores, Linux {platform.release().split('-')[0]}, Python {platform.python_version()}"
