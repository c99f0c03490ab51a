"""The benchmarks' statistics, turns and verdicts."""

from __future__ import annotations

import itertools
import statistics
import threading
from collections.abc import Callable, Sequence

import pytest

from benchmarks.harness import (
    MAX_BURST,
    SLOW_ROUNDS,
    SLOW_SECONDS,
    Contestant,
    NotBuiltError,
    NotOfferedError,
    Row,
    Series,
    Target,
    judge,
    percentile,
    ratio,
    run,
)
from benchmarks.report import Measured, milliseconds, rate, summary, table


class Clock:
    """Time that passes only in what is measured."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def series(name: str, *rounds: Sequence[float]) -> Series:
    return Series(name=name, rounds={turn: list(values) for turn, values in enumerate(rounds)})


def row(*contestants: Contestant, **fields: object) -> Row:
    given = {"key": "row", "title": "an operation", "show": milliseconds, "warm_up": False, "rounds": 5, **fields}
    return Row(contestants=contestants, **given)


def taking(clock: Clock, seconds: float, turns: list[str] | None = None, name: str = "") -> Callable[[], float]:
    def measure() -> float:
        clock.now += seconds
        if turns is not None:
            turns.append(name)
        return seconds

    return measure


def quiet(_line: str) -> None:
    pass


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([5.0], 0.95, 5.0), ([1.0, 2.0], 0.5, 1.5), (list(range(101)), 0.95, 95.0), ([4.0, 1.0, 3.0, 2.0], 1.0, 4.0)],
)
def test_percentile(values: list[float], share: float, expected: float) -> None:
    assert percentile(values, share) == pytest.approx(expected)


def test_percentile_agrees_with_the_standard_library() -> None:
    values = [value**1.7 for value in range(37)]
    assert percentile(values, 0.95) == pytest.approx(statistics.quantiles(values, n=20, method="inclusive")[-1])


def test_median_and_p95_are_over_all_samples() -> None:
    mine = series("a", [1.0, 2.0], [3.0], [100.0])
    assert mine.median == 2.5
    assert mine.p95 == pytest.approx(3.0 + 97.0 * 0.85)


def test_ratio_is_taken_within_rounds_so_that_a_slow_spell_cancels_out() -> None:
    ours = series("ours", [2.0], [20.0], [200.0], [2.0])
    host = series("host", [1.0], [10.0], [100.0])
    assert ratio(ours, host) == 2.0


def test_ratio_of_what_never_met_is_none() -> None:
    assert ratio(Series(name="a", rounds={0: [1.0]}), Series(name="b", rounds={1: [1.0]})) is None


@pytest.mark.parametrize(
    ("target", "value", "met"),
    [
        (Target(subject="ours", against="host", at_most=2.0), 2.0, True),
        (Target(subject="ours", against="host", at_most=1.9), 2.0, False),
        (Target(subject="ours", against="host", at_least=0.5), 0.5, True),
        (Target(subject="ours", against="host", at_least=0.6), 0.5, False),
        (Target(subject="ours", at_most=4.0), 4.0, True),
        (Target(subject="ours", at_most=3.0), 4.0, False),
        (Target(subject="ours", against="gone", at_most=2.0), None, None),
        (Target(subject="gone", at_most=2.0), None, None),
        (Target(subject="unknown", at_most=2.0), None, None),
    ],
)
def test_judge(target: Target, value: float | None, met: bool | None) -> None:
    measured = {
        "ours": series("ours", [4.0], [4.0]),
        "host": series("host", [2.0], [2.0]),
        "gone": Series(name="gone", absent="not built yet: it"),
    }
    verdict = judge(target, measured)
    assert (verdict.value, verdict.met) == (value, met)


def test_all_take_turns_in_every_round() -> None:
    clock, turns = Clock(), []
    names = ["a", "b", "c"]
    run(
        row(*(Contestant(name=name, measure=taking(clock, 0.1, turns, name)) for name in names)),
        tell=quiet,
        clock=clock,
    )
    rounds = [turns[start : start + 3] for start in range(0, len(turns), 3)]
    assert len(rounds) == 5
    assert all(sorted(each) == names for each in rounds)
    assert len({tuple(each) for each in rounds}) > 1, "the order within a round changes"


def test_the_warm_up_is_thrown_away_and_sets_the_burst() -> None:
    clock, values = Clock(), itertools.count(1)

    def measure() -> float:
        clock.now += 0.01
        return float(next(values))

    slow = Contestant(name="slow", measure=taking(clock, 0.5))
    measured = run(row(Contestant(name="quick", measure=measure), slow, warm_up=True), tell=quiet, clock=clock)
    assert min(measured["quick"].samples) == 3.0
    assert 1 < measured["quick"].burst <= MAX_BURST
    assert measured["slow"].burst == 1
    assert len(measured["slow"].samples) == 5


def test_a_row_ends_at_its_bound() -> None:
    clock = Clock()
    measured = run(
        row(Contestant(name="a", measure=taking(clock, 1.0)), seconds=3.5, rounds=100), tell=quiet, clock=clock
    )
    assert len(measured["a"].samples) == 4


def test_a_slow_contestant_leaves_the_later_rounds_to_the_others() -> None:
    clock = Clock()
    quick = Contestant(name="quick", measure=taking(clock, 0.1))
    slow = Contestant(name="slow", measure=taking(clock, SLOW_SECONDS + 1))
    measured = run(row(quick, slow, seconds=1000), tell=quiet, clock=clock)
    assert len(measured["slow"].samples) == SLOW_ROUNDS
    assert len(measured["quick"].samples) == 5
    assert ratio(measured["slow"], measured["quick"]) == pytest.approx((SLOW_SECONDS + 1) / 0.1)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (NotBuiltError("the relay link"), "not built yet: the relay link"),
        (NotOfferedError("text only"), "text only"),
        (OSError("broken\nsecond line"), "failed: OSError: broken"),
    ],
)
def test_one_that_cannot_is_told_and_the_others_go_on(error: Exception, told: str) -> None:
    def fail() -> float:
        raise error

    lines: list[str] = []
    fine = Contestant(name="fine", measure=lambda: 1.0)
    measured = run(row(Contestant(name="bad", measure=fail), fine), tell=lines.append)
    assert measured["bad"].absent == told
    assert not measured["bad"].rounds
    assert len(measured["fine"].samples) == 5
    assert lines == [f"row: bad: {told}"]


def test_a_contestant_that_fails_later_counts_as_absent() -> None:
    answers = iter([1.0, 1.0])

    measured = run(row(Contestant(name="a", measure=lambda: next(answers))), tell=quiet)
    assert measured["a"].absent.startswith("failed: StopIteration")
    assert judge(Target(subject="a", at_most=2.0), measured).met is None


def test_one_that_hangs_is_interrupted() -> None:
    def hang() -> float:
        threading.Event().wait(60)
        return 0.0

    measured = run(row(Contestant(name="hangs", measure=hang), limit=0.05), tell=quiet)
    assert measured["hangs"].absent == "failed: TimeoutError: took longer than 0.05 s"


def test_the_table_holds_figures_ratios_and_verdicts() -> None:
    measured = Measured(
        row=row(
            targets=[
                Target(subject="ours", against="host", at_most=2.0),
                Target(subject="ours", against="cli", at_least=35.0, aim=40.0),
                Target(subject="later", against="host", at_most=2.5),
            ]
        ),
        series={
            "ours": series("ours", [0.0015]),
            "later": Series(name="later", absent="not built yet: it"),
            "host": series("host", [0.001]),
            "cli": series("cli", [0.03]),
        },
    )
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table([measured]).splitlines()]
    assert lines[2][:6] == ["an operation", "ours", "1.50 ms", "1.50 ms", "1", "1.00"]
    assert lines[2][6] == "<= 2 x host: 1.50 ok; >= 35 x the speed of cli (aim 40): 20.00 MISSED"
    assert lines[3] == ["", "later", "not built yet: it", "", "", "", "<= 2.5 x host: not measured"]
    assert lines[5][:6] == ["", "cli", "30.00 ms", "30.00 ms", "1", "20.00"]
    assert summary([measured]) == "3 targets: 1 met, 1 missed, 1 not measured"


def test_rates_are_work_by_seconds() -> None:
    assert rate(1024, "MiB")(2.0) == "512 MiB/s"
