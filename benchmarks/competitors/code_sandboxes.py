"""code-sandboxes, which needs a Jupyter server in a container of its own."""

from __future__ import annotations

import shlex
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.competitors.base import Adapter, Drained
from benchmarks.harness import NotOfferedError

PACKAGES = "/opt/packages"


class CodeSandboxes(Adapter):
    """Its image must hold a Jupyter server: the packages beside this Python are mounted into the common one."""

    output_share: ClassVar = 1 / 1024  # more than a few MiB are lost at its server's rate limit
    file_share: ClassVar = 1 / 64
    sandbox: Any

    def open(self) -> None:
        self.sandbox = self._started()

    def close(self) -> None:
        self.sandbox.stop()

    def run(self, argv: Sequence[str]) -> int:
        return int(self._run(argv).exit_code)

    def run_many(self, argv: Sequence[str], count: int) -> Sequence[int]:
        raise NotOfferedError("one at a time")

    def first_output(self, argv: Sequence[str]) -> float:
        started = time.perf_counter()
        self._run(argv)  # output comes when the command has ended
        return time.perf_counter() - started

    def drain(self, argv: Sequence[str], *, text: bool) -> Drained:
        if not text:
            raise NotOfferedError("text only")
        result = self._run(argv)
        return Drained(size=len(result.stdout), exit_code=result.exit_code)

    def put_file(self, source: Path, target: str) -> None:
        self.sandbox.files.upload(str(source), target)

    def get_file(self, source: str, target: Path) -> None:
        self.sandbox.files.download(source, str(target))

    def removal(self, *, stubborn: bool) -> float:
        if stubborn:
            raise NotOfferedError("its main process is fixed")
        sandbox = self._started()
        started = time.perf_counter()
        sandbox.stop()
        return time.perf_counter() - started

    @property
    def container(self) -> str:
        return str(self.sandbox.info.metadata["container_id"])

    def _run(self, argv: Sequence[str]) -> Any:
        return self.sandbox.commands.run(shlex.join(argv))

    def _started(self) -> Any:
        from code_sandboxes.models import SandboxConfig
        from code_sandboxes.sandboxes.docker import DockerSandbox
        from docker.types import Mount

        server = ["python3", "-m", "jupyter_server", "--allow-root", "--no-browser", "--ServerApp.ip=0.0.0.0"]
        sandbox = DockerSandbox(
            config=SandboxConfig(env_vars={"PYTHONPATH": PACKAGES}, timeout=60),
            image=self.place.image,
            command=[*server, "--ServerApp.port=8888", "--ServerApp.root_dir=/workspace"],
            mounts=[Mount(PACKAGES, sysconfig.get_path("purelib"), type="bind", read_only=True)],
        )
        sandbox.start()
        return sandbox
