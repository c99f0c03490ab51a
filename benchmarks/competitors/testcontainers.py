"""testcontainers, which runs in a container of its own: it cannot join one."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.competitors.base import Adapter, Drained
from benchmarks.competitors.host import STUBBORN
from benchmarks.harness import NotOfferedError


class Testcontainers(Adapter):
    container: Any

    def open(self) -> None:
        self.container = self._started("sleep 1000000")

    def close(self) -> None:
        self.container.stop()

    def run(self, argv: Sequence[str]) -> int:
        return int(self.container.exec(list(argv)).exit_code)

    def first_output(self, argv: Sequence[str]) -> float:
        started = time.perf_counter()
        self.container.exec(list(argv))  # output comes when the command has ended
        return time.perf_counter() - started

    def drain(self, argv: Sequence[str], *, text: bool) -> Drained:
        if text:
            raise NotOfferedError("bytes only")
        result = self.container.exec(list(argv))
        return Drained(size=len(result.output), exit_code=result.exit_code)

    def put_file(self, source: Path, target: str) -> None:
        self.container.copy_into_container(source, target)

    def get_file(self, source: str, target: Path) -> None:
        self.container.copy_from_container(source, target)

    def put_tree(self, source: Path, target: str) -> None:
        self.container.copy_into_container(source, target)

    def removal(self, *, stubborn: bool) -> float:
        container = self._started(shlex.join(["sh", "-c", STUBBORN]) if stubborn else "sleep 1000000")
        started = time.perf_counter()
        container.stop()
        return time.perf_counter() - started

    def _started(self, command: str) -> Any:
        from testcontainers.core.config import testcontainers_config
        from testcontainers.core.container import DockerContainer

        testcontainers_config.ryuk_disabled = True  # its clean-up container's image may not be here
        return DockerContainer(self.place.image, command=command, init=True, working_dir="/tmp").start()
