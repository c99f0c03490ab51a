"""Big output: as bytes, as text, and what it costs the caller in memory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from benchmarks.competitors import Adapter
from benchmarks.harness import AbsentError, Contestant, Row, Target
from benchmarks.report import mebibytes, rate
from benchmarks.stage import Stage

OURS, DAEMON, RELAY, CLI, PY = "yaosb in process", "yaosb daemon", "yaosb relay", "docker CLI", "docker-py"
ASYNC = "yaosb in process, async"
BYTES = (OURS, ASYNC, DAEMON, RELAY, "host", CLI, PY, "testcontainers")
TEXT = (OURS, DAEMON, "llm-sandbox", "code-sandboxes")
AS_BYTES = " as bytes"
LINE = "epoch 12 loss 0.0731 accuracy 97.3 % naïve Bayes, größer als 0,5 → ok"
"""One line of the text: mostly ASCII, with characters of two and three bytes."""
LINES = 2**20 // len(f"{LINE}\n".encode())
"""In the file of about 1 MiB that is written out again and again."""
TEXT_FILE = "/tmp/bench-lines"


@dataclass(frozen=True, kw_only=True)
class Writing:
    """A command that writes ``size`` bytes; ``before`` makes what it needs, ``characters`` what they decode to."""

    argv: Sequence[str]
    before: Sequence[str]
    size: int
    characters: int


def rows(stage: Stage) -> Sequence[Row]:
    size = stage.scale.output
    return [
        Row(
            key="bytes",
            title=f"{size >> 20} MiB of stdout as bytes",
            show=rate(size / 2**20, "MiB"),
            contestants=stage.contestants(BYTES, lambda adapter: drained(adapter, zeros, size, text=False)),
            targets=[
                Target(subject=OURS, against="host", at_least=0.55, aim=0.7),
                Target(subject=OURS, against=PY, at_least=1.2),
                Target(subject=DAEMON, against="host", at_least=0.4, aim=0.55),
                Target(subject=DAEMON, against=PY, at_least=1.2),
                Target(subject=RELAY, against=CLI, at_least=0.8),
            ],
            seconds=80 * stage.scale.seconds,
            rounds=7,
            warm_up=False,
        ),
        Row(
            key="text",
            title=f"{size >> 20} MiB of stdout as text",
            show=rate(size / 2**20, "MiB"),
            contestants=[
                *stage.contestants(TEXT, lambda adapter: drained(adapter, lines, size, text=True)),
                *(
                    Contestant(
                        name=name + AS_BYTES,
                        measure=lambda name=name: drained(stage.adapter(name), lines, size, text=False),
                    )
                    for name in (OURS, DAEMON)
                ),
            ],
            targets=[Target(subject=name, against=name + AS_BYTES, at_least=0.5) for name in (OURS, DAEMON)],
            seconds=60 * stage.scale.seconds,
            rounds=7,
            warm_up=False,
        ),
        Row(
            key="memory",
            title=f"caller's peak memory, {size >> 20} MiB of stdout as bytes",
            show=mebibytes,
            contestants=[Contestant(name=name, measure=lambda name=name: peak(stage, name, size)) for name in BYTES],
            targets=[Target(subject=name, at_most=64 * 2**20) for name in (OURS, DAEMON)],
            seconds=0,
            rounds=1,
            warm_up=False,
        ),
    ]


def zeros(size: int) -> Writing:
    return Writing(argv=["head", "-c", str(size), "/dev/zero"], before=(), size=size, characters=size)


def lines(size: int) -> Writing:
    """Text of about that size. It is read from a file, so that making it costs nothing."""
    copies = max(1, size >> 20)
    make = f'[ -s {TEXT_FILE} ] || yes "$1" | head -n {LINES} > {TEXT_FILE}'
    return Writing(
        argv=["cat", *[TEXT_FILE] * copies],
        before=["sh", "-c", make, "sh", LINE],
        size=copies * LINES * len(f"{LINE}\n".encode()),
        characters=copies * LINES * len(f"{LINE}\n"),
    )


def drained(adapter: Adapter, writing: Callable[[int], Writing], size: int, *, text: bool) -> float:
    """Seconds for ``size`` bytes. Raises where something is missing."""
    command = writing(max(1, int(size * adapter.output_share)))
    if command.before:
        adapter.run(command.before)
    started = time.perf_counter()
    drained = adapter.drain(command.argv, text=text)
    elapsed = time.perf_counter() - started
    expected = command.characters if text else command.size
    if drained.size != expected or drained.exit_code not in (0, None):
        raise RuntimeError(f"{drained.size} of {expected} arrived, exit code {drained.exit_code}")
    return elapsed * size / command.size


def peak(stage: Stage, name: str, size: int) -> float:
    """The peak of a process of its own that does nothing else."""
    place = stage.place_of(name)
    own = stage.root / f"peak-{place.name}"
    own.mkdir()
    argument = json.dumps({**asdict(replace(place, root=own)), "root": str(own)})
    argv = [sys.executable, "-m", "benchmarks.peak", name, argument, str(size)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no reason told"])[-1])
    told = json.loads(done.stdout.splitlines()[-1])
    if "absent" in told:
        raise AbsentError(told["absent"])
    return float(told["peak"])
