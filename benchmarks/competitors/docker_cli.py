"""The `docker` command line."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from benchmarks.competitors.base import Adapter, Drained
from benchmarks.competitors.host import STUBBORN, drain_process, first_line_of_process


def docker(*argv: str) -> str:
    """Runs the command line; its output. Raises `subprocess.CalledProcessError`."""
    return subprocess.run(["docker", *argv], check=True, capture_output=True, text=True).stdout.strip()


class DockerCli(Adapter):
    joins: ClassVar = True

    def run(self, argv: Sequence[str]) -> int:
        return subprocess.run(self._exec(argv), check=False, capture_output=True).returncode

    def first_output(self, argv: Sequence[str]) -> float:
        return first_line_of_process(self._exec(argv))

    def drain(self, argv: Sequence[str], *, text: bool) -> Drained:
        return drain_process(self._exec(argv))

    def put_file(self, source: Path, target: str) -> None:
        docker("cp", str(source), f"{self.place.container}:{target}")

    def get_file(self, source: str, target: Path) -> None:
        docker("cp", f"{self.place.container}:{source}", str(target))

    put_tree = put_file
    get_tree = get_file

    def first_result(self) -> float:
        started = time.perf_counter()
        docker("run", "--rm", self.place.image, "true")
        return time.perf_counter() - started

    def removal(self, *, stubborn: bool) -> float:
        main = ["sh", "-c", STUBBORN] if stubborn else ["sleep", "1000000"]
        container = docker("run", "--detach", "--init", self.place.image, *main)
        started = time.perf_counter()
        docker("rm", "--force", container)
        return time.perf_counter() - started

    def _exec(self, argv: Sequence[str]) -> list[str]:
        return ["docker", "exec", self.place.container, *argv]
