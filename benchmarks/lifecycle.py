"""Making and removing environments."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness import Contestant, Row, Target
from benchmarks.report import milliseconds
from benchmarks.stage import Stage

OURS, DAEMON, CLI = "yaosb in process", "yaosb daemon", "docker CLI"
NAMES = (OURS, DAEMON, CLI, "docker-py", "llm-sandbox", "testcontainers", "code-sandboxes")
STUBBORN = ", pid 1 ignores TERM"
RM = "docker rm -f"


def rows(stage: Stage) -> Sequence[Row]:
    def removal(name: str, label: str, *, stubborn: bool) -> Contestant:
        return Contestant(name=label, measure=lambda: float(stage.adapter(name).removal(stubborn=stubborn)))

    ours = (OURS, DAEMON)
    return [
        Row(
            key="remove",
            title="remove",
            show=milliseconds,
            contestants=[
                *(removal(name, RM if name == CLI else name, stubborn=False) for name in NAMES),
                *(removal(name, name + STUBBORN, stubborn=True) for name in ours),
                removal(CLI, RM + STUBBORN, stubborn=True),
            ],
            targets=[
                *(Target(subject=name, against=RM, at_most=1.1) for name in ours),
                *(Target(subject=name + STUBBORN, against=RM, at_most=1.1) for name in ours),
            ],
            seconds=60 * stage.scale.seconds,
            rounds=10,
            warm_up=False,
        )
    ]
