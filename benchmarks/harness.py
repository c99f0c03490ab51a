"""Measures several ways to do one thing, taking turns, and judges the ratios between them.

Every quantity is "less is better": seconds, bytes, a share of a core. A rate is shown by dividing the row's work by the
seconds, after all statistics are done.
"""

from __future__ import annotations

import random
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Final

BURST_SECONDS: Final = 0.05
MAX_BURST: Final = 20
SLOW_SECONDS: Final = 8.0
SLOW_ROUNDS: Final = 2
MIN_ROUNDS: Final = 2


class AbsentError(Exception):
    """There is nothing to measure: the text stands in the table in place of figures."""


class NotBuiltError(AbsentError):
    """A part of ours that is not there yet."""

    def __init__(self, part: str) -> None:
        super().__init__(f"not built yet: {part}")


class NotOfferedError(AbsentError):
    """Something a competitor does not do."""


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """One way to do a row's operation. ``measure`` does it once and returns the row's quantity."""

    name: str
    measure: Callable[[], float]


@dataclass(frozen=True, kw_only=True)
class Target:
    """What a contestant must reach.

    ``at_most`` times the quantity of ``against``, or ``at_least`` times its speed (the inverse); without ``against``,
    ``at_most`` is a quantity. ``aim`` is what would be better still.
    """

    subject: str
    against: str = ""
    at_most: float | None = None
    at_least: float | None = None
    aim: float | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One operation. The first contestant is the one that the others are compared with.

    ``show`` renders a quantity; ``seconds`` bounds the whole row, ``limit`` one measurement; ``warm_up`` throws each
    contestant's first measurement away and lets quick ones run in bursts.
    """

    key: str
    title: str
    show: Callable[[float], str]
    contestants: Sequence[Contestant]
    targets: Sequence[Target] = ()
    seconds: float = 20.0
    rounds: int = 30
    limit: float = 60.0
    warm_up: bool = True


@dataclass(kw_only=True)
class Series:
    """What one contestant gave: its samples, round by round, or the reason why there are none."""

    name: str
    rounds: dict[int, list[float]] = field(default_factory=dict)
    absent: str = ""
    burst: int = 1
    slow: bool = False

    @property
    def samples(self) -> list[float]:
        return [value for values in self.rounds.values() for value in values]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def p95(self) -> float:
        return percentile(self.samples, 0.95)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A target beside what was measured: ``value`` is the ratio, or the quantity where it stands alone."""

    target: Target
    value: float | None
    met: bool | None


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` of the values lie, between neighbours in proportion."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def ratio(series: Series, against: Series) -> float | None:
    """How many times the quantity of ``against``: the median over the rounds in which both took part.

    Compared round by round, so that what slows the machine for a while slows both.
    """
    common = series.rounds.keys() & against.rounds.keys()
    pairs = [(statistics.median(series.rounds[turn]), statistics.median(against.rounds[turn])) for turn in common]
    ratios = [ours / theirs for ours, theirs in pairs if theirs > 0]
    return statistics.median(ratios) if ratios else None


def judge(target: Target, series: dict[str, Series]) -> Verdict:
    """Whether a target is met; None where one of both was not measured."""
    subject = series.get(target.subject)
    if subject is None or subject.absent:
        return Verdict(target=target, value=None, met=None)
    if not target.against:
        value: float | None = subject.median
    else:
        against = series.get(target.against)
        value = None if against is None or against.absent else ratio(subject, against)
    if value is None:
        return Verdict(target=target, value=None, met=None)
    if target.at_least is not None:
        value = 1 / value
        return Verdict(target=target, value=value, met=value >= target.at_least)
    return Verdict(target=target, value=value, met=target.at_most is None or value <= target.at_most)


def run(row: Row, *, tell: Callable[[str], None], clock: Callable[[], float] = time.perf_counter) -> dict[str, Series]:
    """The series of every contestant, in the row's order. One that fails is told and does not stop the others."""
    series = {contestant.name: Series(name=contestant.name) for contestant in row.contestants}
    order = list(row.contestants)
    shuffle = random.Random(row.key).shuffle  # the same turns every time
    if row.warm_up:
        for contestant in order:
            _warm_up(row, contestant, series[contestant.name], clock)
    started = clock()
    for turn in range(row.rounds):
        if turn >= MIN_ROUNDS and clock() - started > row.seconds:
            break
        shuffle(order)
        for contestant in order:
            mine = series[contestant.name]
            if not mine.absent and not (mine.slow and turn >= SLOW_ROUNDS):
                _take_turn(row, contestant, mine, turn, clock)
    for mine in series.values():
        if mine.absent:
            tell(f"{row.key}: {mine.name}: {mine.absent}")
    return series


def _warm_up(row: Row, contestant: Contestant, series: Series, clock: Callable[[], float]) -> None:
    with _told(series, row.limit):
        contestant.measure()  # opens it
        started = clock()
        contestant.measure()
        series.burst = max(1, min(MAX_BURST, int(BURST_SECONDS / max(clock() - started, 1e-9))))


def _take_turn(row: Row, contestant: Contestant, series: Series, turn: int, clock: Callable[[], float]) -> None:
    started = clock()
    with _told(series, row.limit):
        values = [contestant.measure() for _ in range(series.burst)]
        series.rounds[turn] = values
    series.slow = clock() - started > SLOW_SECONDS


@contextmanager
def _told(series: Series, limit: float) -> Iterator[None]:
    """What goes wrong takes this contestant out of the row."""
    try:
        with _bounded(limit):
            yield
    except AbsentError as reason:
        series.absent = str(reason)
    except Exception as error:  # of any library's own kind
        first = (str(error).strip().splitlines() or [""])[0][:160]
        series.absent = f"failed: {type(error).__name__}: {first}"


@contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    """Interrupts a blocking call of whatever library in the main thread."""

    def expired(_signum: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
