"""Docker's own: runtimes with options of their own, a box on them, images made on the spot."""

from __future__ import annotations

import io
import secrets
import shutil
import tarfile
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.contract.box import Box
from tests.rig.require import TEST_IMAGE
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec, Runtime
from yaosb_jupyter.tai.runtimes.docker import DockerRuntime


class OpenRuntime(Protocol):
    async def __call__(self, address: str = "local", **options: str) -> DockerRuntime: ...


class MakeBox(Protocol):
    async def __call__(self, runtime: Runtime, *, start: bool = True, **fields: Any) -> Box: ...


@pytest.fixture
def directory() -> Iterator[Path]:
    """As a data directory: its owner's alone."""
    path = Path(tempfile.mkdtemp(prefix="yaosb-"))
    path.chmod(0o700)
    yield path
    shutil.rmtree(path)


@pytest.fixture
async def open_runtime(directory: Path) -> AsyncIterator[OpenRuntime]:
    opened: list[DockerRuntime] = []

    async def open_one(address: str = "local", **options: str) -> DockerRuntime:
        runtime = DockerRuntime(address, {"probe_image": TEST_IMAGE, **options}, directory / "run")
        opened.append(runtime)
        await runtime.open()
        return runtime

    yield open_one
    for runtime in opened:
        await runtime.close()


@pytest.fixture
async def runtime(open_runtime: OpenRuntime) -> DockerRuntime:
    return await open_runtime()


@pytest.fixture
async def make_box(open_runtime: OpenRuntime, directory: Path) -> AsyncIterator[MakeBox]:
    made: list[Box] = []

    async def make(runtime: Runtime, *, start: bool = True, **fields: Any) -> Box:
        spec = make_spec(directory, **fields)
        made.append(Box(runtime=runtime, runtime_id=await runtime.create(spec), spec=spec))
        return await made[-1].start() if start else made[-1]

    yield make
    for box in made:
        await box.runtime.remove(box.runtime_id)
        await box.runtime.remove_workspace(box.spec)


def make_spec(directory: Path, **fields: Any) -> EnvironmentSpec:
    uid = f"01DOCKER{secrets.token_hex(9).upper()}"
    own = directory / "sandboxes" / uid
    defaults: dict[str, Any] = {
        "uid": uid,
        "name": f"yao-sb-test-{uid.lower()}",
        "image": TEST_IMAGE,
        "labels": {"managed-by": "yao-sandbox", "sandbox-uid": uid},
        "directory": own,
        "workspace": own / "workspace",
    }
    return EnvironmentSpec(**{**defaults, **fields})


class MakeImage(Protocol):
    async def __call__(
        self, *changes: str, files: Mapping[str, bytes] | None = None, added: Mapping[str, bytes] | None = None
    ) -> str: ...


@pytest.fixture
async def make_image(runtime: DockerRuntime) -> AsyncIterator[MakeImage]:
    """An image on the test base, with ``added`` files, or of some ``files`` only."""
    made: list[str] = []

    async def make(
        *changes: str, files: Mapping[str, bytes] | None = None, added: Mapping[str, bytes] | None = None
    ) -> str:
        name = f"yaosb/test-made:{secrets.token_hex(6)}"
        repository, tag = name.split(":")
        if files is None:
            body = {"Image": TEST_IMAGE}
            container = (await runtime._engine.call(lambda client: client.create_container_from_config(body)))["Id"]
            if added:
                data = archive(added)
                await runtime._engine.call(lambda client: client.put_archive(container, "/", data))
            await runtime._engine.call(lambda client: client.commit(container, repository, tag, changes=list(changes)))
            await runtime._engine.call(lambda client: client.remove_container(container))
        else:
            data = archive(files)
            await runtime._engine.call(
                lambda client: client.import_image_from_data(
                    data, repository=repository, tag=tag, changes=list(changes)
                )
            )
        made.append(name)
        return name

    yield make
    for name in made:
        await runtime._engine.call(lambda client, name=name: client.remove_image(name, force=True))


def archive(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
