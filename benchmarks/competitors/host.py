"""No sandbox at all: the floor."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.competitors.base import PIECE, Adapter, Drained

STUBBORN = "trap '' TERM; while :; do sleep 1; done"


def drain_process(argv: Sequence[str]) -> Drained:
    """Reads a child's stdout in the largest pieces a pipe gives, its stderr beside it."""
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        aside = threading.Thread(target=process.stderr.read)
        aside.start()
        size, buffer, stdout = 0, bytearray(PIECE), process.stdout.fileno()
        while count := os.readv(stdout, [buffer]):
            size += count
        aside.join()
    return Drained(size=size, exit_code=process.returncode)


def first_line_of_process(argv: Sequence[str]) -> float:
    started = time.perf_counter()
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        return time.perf_counter() - started


class Host(Adapter):
    """`subprocess` and `shutil` on the host."""

    def run(self, argv: Sequence[str]) -> int:
        return subprocess.run(argv, check=False).returncode

    def first_output(self, argv: Sequence[str]) -> float:
        # The system's own python3, which the image has too; the first on the PATH may be a version manager's script.
        program = shutil.which(argv[0], path="/usr/bin:/bin") or argv[0]
        return first_line_of_process([program, *argv[1:]])

    def drain(self, argv: Sequence[str], *, text: bool) -> Drained:
        return drain_process(argv)

    def put_file(self, source: Path, target: str) -> None:
        shutil.copyfile(source, self._inside(target))

    def get_file(self, source: str, target: Path) -> None:
        shutil.copyfile(self._inside(source), target)

    def put_tree(self, source: Path, target: str) -> None:
        shutil.copytree(source, self._inside(target))

    def get_tree(self, source: str, target: Path) -> None:
        shutil.copytree(self._inside(source), target)

    def holds(self, path: str, *, size: int, count: int) -> bool:
        return super().holds(str(self._inside(path)), size=size, count=count)

    def _inside(self, path: str) -> Path:
        """Stands for a path inside: a directory of the run's own, on the file system that workspaces are on."""
        place = self.place.root / "host" / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        return place
