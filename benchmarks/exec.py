"""Small commands: how long one takes, when its output arrives, how many go at once."""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks.competitors import Adapter
from benchmarks.harness import Row, Target
from benchmarks.report import milliseconds, rate
from benchmarks.stage import Stage

OURS, DAEMON, RELAY, CLI = "yaosb in process", "yaosb daemon", "yaosb relay", "docker CLI"
OTHERS = ("host", CLI, "docker-py", "llm-sandbox", "testcontainers", "code-sandboxes")
TRUE = ["true"]
PRINT = ["python3", "-c", "print(1)"]
MANY = 100


def rows(stage: Stage) -> Sequence[Row]:
    names = (OURS, DAEMON, RELAY, *OTHERS)
    return [
        Row(
            key="true",
            title="exec of true",
            show=milliseconds,
            contestants=stage.contestants(names, true),
            targets=[
                Target(subject=OURS, against="host", at_most=2.0),
                Target(subject=OURS, against=CLI, at_least=35.0),
                Target(subject=DAEMON, against="host", at_most=2.5),
            ],
            seconds=40 * stage.scale.seconds,
        ),
        Row(
            key="first-line",
            title="first line of python3 -c 'print(1)'",
            show=milliseconds,
            contestants=stage.contestants(names, lambda adapter: float(adapter.first_output(PRINT))),
            targets=[Target(subject=name, against="host", at_most=1.25) for name in (OURS, DAEMON)],
            seconds=40 * stage.scale.seconds,
        ),
        Row(
            key="concurrent",
            title=f"{MANY} concurrent execs",
            show=rate(MANY, "execs"),
            contestants=stage.contestants((OURS, DAEMON, "host", CLI, "docker-py"), many),
            targets=[Target(subject=name, against=CLI, at_least=20.0) for name in (OURS, DAEMON)],
            seconds=40 * stage.scale.seconds,
            rounds=6,
            warm_up=False,
        ),
    ]


def true(adapter: Adapter) -> float:
    started = time.perf_counter()
    code = adapter.run(TRUE)
    elapsed = time.perf_counter() - started
    if code != 0:
        raise RuntimeError(f"exit code {code}")
    return elapsed


def many(adapter: Adapter) -> float:
    started = time.perf_counter()
    codes = adapter.run_many(TRUE, MANY)
    elapsed = time.perf_counter() - started
    if any(codes) or len(codes) != MANY:
        raise RuntimeError(f"{sum(map(bool, codes))} of {MANY} failed")
    return elapsed
