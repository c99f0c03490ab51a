"""Files and trees, into a sandbox and out of it."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.competitors import Adapter
from benchmarks.harness import Row, Target
from benchmarks.report import milliseconds, rate
from benchmarks.stage import Stage

OURS, DAEMON, RELAY, CLI = "yaosb in process", "yaosb daemon", "yaosb relay", "docker CLI"
OTHERS = ("host", CLI, "docker-py", "llm-sandbox", "testcontainers", "code-sandboxes")
NAMES = (OURS, DAEMON, RELAY, *OTHERS)
TREE_FILES = 1000
TREE_FILE_SIZE = 1024

_serial = itertools.count()


def rows(stage: Stage) -> Sequence[Row]:
    size = stage.scale.file
    title = f"{size >> 20} MiB file"
    return [
        _row(stage, "file-up", f"{title} in", rate(size / 2**20, "MiB"), _file_up, floor=5.0, host=0.8),
        _row(stage, "file-down", f"{title} out", rate(size / 2**20, "MiB"), _file_down, floor=5.0, host=0.8),
        _row(stage, "tree-up", f"{TREE_FILES} files of 1 KiB in", milliseconds, _tree_up, floor=3.0),
        _row(stage, "tree-down", f"{TREE_FILES} files of 1 KiB out", milliseconds, _tree_down, floor=3.0),
    ]


Operation = Callable[[Stage, Adapter], float]


def _row(
    stage: Stage,
    key: str,
    title: str,
    show: Callable[[float], str],
    operation: Operation,
    *,
    floor: float,
    host: float | None = None,
) -> Row:
    targets = [Target(subject=name, against=CLI, at_least=floor) for name in (OURS, DAEMON)]
    if host is not None:
        targets += [Target(subject=name, against="host", at_least=host) for name in (OURS, DAEMON)]
    return Row(
        key=key,
        title=title,
        show=show,
        contestants=stage.contestants(NAMES, lambda adapter: operation(stage, adapter)),
        targets=[*targets, Target(subject=RELAY, against=CLI, at_least=1.0)],
        seconds=25 * stage.scale.seconds,
        rounds=10,
        warm_up=False,
    )


def _file_up(stage: Stage, adapter: Adapter) -> float:
    source, size = _file(stage, adapter)
    target = f"/workspace/file-{adapter.place.name}"  # the same every time: a file is replaced
    os.utime(source)  # it was changed: what is there unchanged, some of us do not copy
    elapsed = _timed(lambda: adapter.put_file(source, target))
    _check(adapter.holds(target, size=size, count=1), "the file is not there")
    return elapsed * stage.scale.file / size


def _file_down(stage: Stage, adapter: Adapter) -> float:
    source, size = _file(stage, adapter)
    inside, target = f"/workspace/source-{adapter.place.name}", stage.root / f"down-{adapter.place.name}"
    if inside not in stage.made:
        adapter.put_file(source, inside)
        stage.made.add(inside)
    if target.exists():
        os.utime(target)  # as above
    elapsed = _timed(lambda: adapter.get_file(inside, target))
    _check(target.stat().st_size == size, "the file is not whole")
    return elapsed * stage.scale.file / size


def _tree_up(stage: Stage, adapter: Adapter) -> float:
    source, target = _tree(stage), f"/workspace/tree-{adapter.place.name}-{next(_serial)}"
    elapsed = _timed(lambda: adapter.put_tree(source, target))
    _check(adapter.holds(target, size=TREE_FILE_SIZE, count=TREE_FILES), "files are missing")
    return elapsed


def _tree_down(stage: Stage, adapter: Adapter) -> float:
    inside, target = f"/workspace/source-tree-{adapter.place.name}", stage.root / f"tree-{next(_serial)}"
    if inside not in stage.made:
        adapter.put_tree(_tree(stage), inside)
        stage.made.add(inside)
    elapsed = _timed(lambda: adapter.get_tree(inside, target))
    _check(sum(path.is_file() for path in target.rglob("*")) == TREE_FILES, "files are missing")
    return elapsed


def _timed(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _check(good: bool, what: str) -> None:
    if not good:
        raise RuntimeError(what)


def _file(stage: Stage, adapter: Adapter) -> tuple[Path, int]:
    """A file of random bytes, of the size that this adapter is given."""
    size = int(stage.scale.file * adapter.file_share)
    path = stage.root / f"file-{size}"
    if not path.exists():
        path.write_bytes(os.urandom(size))
    return path, size


def _tree(stage: Stage) -> Path:
    path = stage.root / "tree"
    if not path.exists():
        path.mkdir()
        for index in range(TREE_FILES):
            (path / f"{index:04}").write_bytes(os.urandom(TREE_FILE_SIZE))
    return path
