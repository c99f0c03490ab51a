"""Without an engine."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.exec import true
from benchmarks.harness import Contestant, Row, Target
from benchmarks.report import milliseconds
from benchmarks.stage import Stage

EMBEDDED, OURS, CLI = "yaosb embedded", "yaosb in process", "docker CLI"


def rows(stage: Stage) -> Sequence[Row]:
    labels = {EMBEDDED: EMBEDDED, OURS: "yaosb in process (docker)", CLI: "docker run --rm"}
    return [
        Row(
            key="first-result",
            title="create to first result",
            show=milliseconds,
            contestants=[
                Contestant(name=label, measure=lambda name=name: float(stage.adapter(name).first_result()))
                for name, label in labels.items()
            ],
            targets=[Target(subject=EMBEDDED, at_most=0.060)],
            seconds=30 * stage.scale.seconds,
            rounds=15,
        ),
        Row(
            key="embedded-true",
            title="exec of true, embedded",
            show=milliseconds,
            contestants=stage.contestants((EMBEDDED, "host"), true),
            targets=[Target(subject=EMBEDDED, against="host", at_most=2.0)],
            seconds=15 * stage.scale.seconds,
        ),
    ]
