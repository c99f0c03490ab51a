"""llm-sandbox on a container that exists already."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.competitors.base import Adapter, Drained
from benchmarks.harness import NotOfferedError


class LlmSandbox(Adapter):
    joins: ClassVar = True
    output_share: ClassVar = 1 / 16
    session: Any

    def open(self) -> None:
        self.session = self._session(container_id=self.place.container)
        self.session.open()

    def close(self) -> None:
        self.session.close()

    def run(self, argv: Sequence[str]) -> int:
        return int(self.session.execute_command(shlex.join(argv)).exit_code)

    def first_output(self, argv: Sequence[str]) -> float:
        started, arrived = time.perf_counter(), []
        self.session.execute_command(
            shlex.join(argv),
            on_stdout=lambda _text: arrived.append(time.perf_counter()),
        )
        return arrived[0] - started

    def drain(self, argv: Sequence[str], *, text: bool) -> Drained:
        if not text:
            raise NotOfferedError("text only")
        result = self.session.execute_command(shlex.join(argv))
        return Drained(size=len(result.stdout), exit_code=result.exit_code)

    def put_file(self, source: Path, target: str) -> None:
        self.session.copy_to_runtime(str(source), target)

    def get_file(self, source: str, target: Path) -> None:
        self.session.copy_from_runtime(source, str(target))

    put_tree = put_file
    get_tree = get_file

    def removal(self, *, stubborn: bool) -> float:
        if stubborn:
            raise NotOfferedError("its main process is fixed")
        session = self._session(image=self.place.image)
        session.open()
        started = time.perf_counter()
        session.close()
        return time.perf_counter() - started

    def _session(self, **where: str) -> Any:
        from llm_sandbox import SandboxSession

        return SandboxSession(lang="python", workdir="/workspace", skip_environment_setup=True, **where)
