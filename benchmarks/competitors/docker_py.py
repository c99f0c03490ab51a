"""docker-py: `exec_run` and the archive calls."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from benchmarks.competitors.base import Adapter, Drained
from benchmarks.competitors.host import STUBBORN

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container


class DockerPy(Adapter):
    joins: ClassVar = True
    client: DockerClient
    container: Container

    def open(self) -> None:
        import docker

        self.client = docker.from_env()
        self.container = self.client.containers.get(self.place.container)

    def close(self) -> None:
        self.client.close()

    def run(self, argv: Sequence[str]) -> int:
        return int(self.container.exec_run(list(argv), demux=True).exit_code)

    def run_many(self, argv: Sequence[str], count: int) -> Sequence[int]:
        # A client each: one client keeps 25 pools, one for each URL, and closes those that other threads are using.
        def run(_index: int) -> int:
            with DockerPy(self.place) as mine:
                return mine.run(argv)

        with ThreadPoolExecutor(count) as threads:
            return list(threads.map(run, range(count)))

    def first_output(self, argv: Sequence[str]) -> float:
        started = time.perf_counter()
        stream = self.container.exec_run(list(argv), stream=True, demux=True).output
        next(stream)
        elapsed = time.perf_counter() - started
        for _ in stream:
            pass
        return elapsed

    def drain(self, argv: Sequence[str], *, text: bool) -> Drained:
        # Streaming, it gives no exit code.
        stream = self.container.exec_run(list(argv), stream=True, demux=True).output
        return Drained(size=sum(len(stdout or b"") for stdout, _ in stream), exit_code=None)

    def put_file(self, source: Path, target: str) -> None:
        with io.BytesIO() as archive:
            with tarfile.open(fileobj=archive, mode="w") as tar:
                tar.add(source, arcname=Path(target).name)
            archive.seek(0)
            self.container.put_archive(str(Path(target).parent), archive)

    def get_file(self, source: str, target: Path) -> None:
        chunks, _ = self.container.get_archive(source)
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as tar:
            for member in _renamed(tar, Path(source).name, target.name):
                tar.extract(member, target.parent, filter="data")

    put_tree = put_file
    get_tree = get_file

    def removal(self, *, stubborn: bool) -> float:
        main = ["sh", "-c", STUBBORN] if stubborn else ["sleep", "1000000"]
        container = self.client.containers.run(self.place.image, main, init=True, detach=True)
        started = time.perf_counter()
        container.remove(force=True)
        return time.perf_counter() - started


def _renamed(tar: tarfile.TarFile, old: str, new: str) -> Iterable[tarfile.TarInfo]:
    for member in tar:
        member.name = new + member.name.removeprefix(old)
        yield member
