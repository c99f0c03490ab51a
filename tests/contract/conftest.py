"""One suite over every runtime: `host` and what is made of it come once for each."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.contract.box import Box
from tests.contract.hosts import Host, host_of, hosts
from tests.contract.volumes.rigs import archived, served
from tests.contract.workspaces import SECRET, EachVolume, Rig, StreamedVolume, linked
from yaosb_jupyter.guest import confined, staging
from yaosb_jupyter.guest.beneath import walk_beneath
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec, Runtime, RuntimeInfo
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.tai.volumes.local import LocalVolume


class MakeSpec(Protocol):
    def __call__(self, **fields: Any) -> EnvironmentSpec: ...


class MakeBox(Protocol):
    async def __call__(self, *, start: bool = True, runtime: Runtime | None = None, **fields: Any) -> Box: ...


AROUND = {"link": linked, "daemon": served, "archive": archived}
DIRECT = ["local", "local, walked", "link"]
"""Volumes that hold the files themselves: in this process, or in a guest's."""
RIGS = [*DIRECT, "daemon", pytest.param("archive", marks=pytest.mark.docker)]


@pytest.fixture
def directory() -> Iterator[Path]:
    """A short directory that an unprivileged sandbox can reach, as a data directory is."""
    path = Path(tempfile.mkdtemp(prefix="yaosb-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def hostile(directory: Path) -> Path:
    """A workspace's directory in the hands of whoever is in the sandbox; its parent holds a secret of the host's."""
    (directory / "secret").write_bytes(SECRET)
    workspace = directory / "workspace"
    workspace.mkdir()
    return workspace


@pytest.fixture(params=RIGS)
async def rig(request: pytest.FixtureRequest, hostile: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    """A volume over it, once for each kind."""
    if request.param in AROUND:
        async with AROUND[request.param](hostile) as found:
            yield found
        return
    if request.param == "local, walked":  # a kernel without openat2, a file system without unnamed files
        monkeypatch.setattr(confined, "open_beneath", walk_beneath)
        monkeypatch.setattr(staging, "_UNNAMED", staging._WRITE)
    kind = {"streamed": StreamedVolume, "each": EachVolume}.get(request.param, LocalVolume)
    yield Rig(volume=kind(hostile, sandbox="box"), pids=(os.getpid(),))


@pytest.fixture
def volume(rig: Rig) -> Volume:
    return rig.volume


@pytest.fixture(params=hosts("memory", "docker", "embedded"))
def host(request: pytest.FixtureRequest, directory: Path) -> Iterator[Host]:
    """A module that has more to say of some hosts names others."""
    yield from host_of(request.param, directory)


@pytest.fixture
def labels() -> dict[str, str]:
    return {"managed-by": "yao-sandbox", "sandbox-data-dir": f"test-{secrets.token_hex(6)}"}


@pytest.fixture
def make_spec(host: Host, labels: dict[str, str]) -> MakeSpec:
    """A spec with every default; its directories are made, as the manager makes them."""

    def make(**fields: Any) -> EnvironmentSpec:
        uid = f"01TEST{secrets.token_hex(10).upper()}"
        directory = host.directory / "sandboxes" / uid
        for name in ("workspace", "run"):
            (directory / name).mkdir(parents=True)
        defaults: dict[str, Any] = {
            "uid": uid,
            "name": f"yao-sb-test-{uid.lower()}",
            "image": host.image,
            "directory": directory,
            "workspace": directory / "workspace",
        }
        marked = {**labels, "sandbox-uid": uid, **fields.pop("labels", {})}
        return EnvironmentSpec(**{**defaults, **fields, "labels": marked})

    return make


@dataclass
class Opened:
    """The runtime of a test. `again` puts another in its place, as a restart of the manager does."""

    host: Host
    runtime: Runtime
    info: RuntimeInfo

    async def again(self) -> Runtime:
        await self.runtime.close()
        self.runtime = self.host.runtime()
        self.info = await self.runtime.open()
        return self.runtime


@pytest.fixture
async def opened(host: Host, labels: dict[str, str]) -> AsyncIterator[Opened]:
    runtime = host.runtime()
    found = Opened(host=host, runtime=runtime, info=await runtime.open())
    yield found
    for state in await found.runtime.list(labels):
        await found.runtime.remove(state.runtime_id)
    await found.runtime.close()


@pytest.fixture
def runtime(opened: Opened) -> Runtime:
    """An open runtime; what a test leaves on its host is removed."""
    return opened.runtime


@pytest.fixture
def info(opened: Opened) -> RuntimeInfo:
    """What the runtime told when it was opened."""
    return opened.info


@pytest.fixture
async def make_box(opened: Opened, make_spec: MakeSpec, labels: dict[str, str]) -> AsyncIterator[MakeBox]:
    """An environment, running unless asked otherwise; its workspace is removed as its runtime removes them."""
    made: list[EnvironmentSpec] = []

    async def make(*, start: bool = True, runtime: Runtime | None = None, **fields: Any) -> Box:
        owner = runtime or opened.runtime
        spec = make_spec(**fields)
        made.append(spec)
        box = Box(runtime=owner, runtime_id=await owner.create(spec), spec=spec)
        return await box.start() if start else box

    yield make
    for state in await opened.runtime.list(labels):
        await opened.runtime.remove(state.runtime_id)
    for spec in made:
        await opened.runtime.remove_workspace(spec)


@pytest.fixture
async def box(make_box: MakeBox) -> Box:
    return await make_box()
