"""The hosts that the contract is checked on: how to open a runtime there, and how to go behind its back."""

from __future__ import annotations

import asyncio
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.rig.require import TEST_IMAGE, require
from yaosb_jupyter.link.services import NO_SERVICES, Services
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec, Runtime
from yaosb_jupyter.tai.runtimes.memory import MemoryEngine, MemoryRuntime


class Host(ABC):
    """One host. ``image`` has sh and python3; what it keeps is under ``directory``: short, and world-readable.

    ``services`` are offered to its sandboxes.
    """

    image: str

    def __init__(self, directory: Path, services: Services = NO_SERVICES) -> None:
        self.directory = directory
        self.services = services
        directory.joinpath("run").mkdir()

    @abstractmethod
    def runtime(self) -> Runtime:
        """A new runtime object over the same host, as after a restart of the manager."""

    @abstractmethod
    async def remove_by_hand(self, spec: EnvironmentSpec, runtime_id: str) -> None:
        """Ends an environment as a person at the host would, without any runtime."""

    async def has_workspace(self, spec: EnvironmentSpec) -> bool:
        """Whether anything is left of the files of one that was removed."""
        return await asyncio.to_thread(spec.workspace.exists)

    def close(self) -> None:  # noqa: B027 - most hosts keep nothing running
        """Ends what the host itself keeps running."""


class MemoryHost(Host):
    image = "memory"

    def __init__(self, directory: Path, services: Services = NO_SERVICES) -> None:
        super().__init__(directory, services)
        self.engine = MemoryEngine(images={self.image})

    def runtime(self) -> Runtime:
        return MemoryRuntime(self.engine)

    async def remove_by_hand(self, spec: EnvironmentSpec, runtime_id: str) -> None:
        await asyncio.to_thread(self.engine.vanish, runtime_id)

    def close(self) -> None:
        self.engine.close()


class DockerHost(Host):
    image = TEST_IMAGE

    def address(self) -> str:
        return os.environ.get("SANDBOX_TEST_LOCAL_ADDR") or "local"

    def options(self) -> Mapping[str, str]:
        return {}

    def runtime(self) -> Runtime:
        from yaosb_jupyter.tai.runtimes.docker import DockerRuntime

        options = {"probe_image": TEST_IMAGE, **self.options()}
        return DockerRuntime(self.address(), options, self.directory / "run", self.services)

    async def remove_by_hand(self, spec: EnvironmentSpec, runtime_id: str) -> None:
        done = await asyncio.create_subprocess_exec("docker", "rm", "-f", runtime_id, stdout=asyncio.subprocess.DEVNULL)
        assert await done.wait() == 0


class RelayHost(DockerHost):
    """An engine that does not see our files: a volume, and the relay."""

    def options(self) -> Mapping[str, str]:
        return {"shared_files": "no"}

    async def has_workspace(self, spec: EnvironmentSpec) -> bool:
        argv = ["docker", "volume", "inspect", f"yaosb-{spec.uid.lower()}"]
        nothing = asyncio.subprocess.DEVNULL
        return await (await asyncio.create_subprocess_exec(*argv, stdout=nothing, stderr=nothing)).wait() == 0


class TlsHost(RelayHost):
    """The same over TCP with TLS."""

    def address(self) -> str:
        return os.environ["SANDBOX_TEST_REMOTE_ADDR"]

    def options(self) -> Mapping[str, str]:
        certs = os.environ["SANDBOX_TEST_REMOTE_CERTS"]
        files = {"tls_ca": "ca.pem", "tls_cert": "cert.pem", "tls_key": "key.pem"}
        return {"shared_files": "no", **{name: f"{certs}/{file}" for name, file in files.items()}}


class EngineHost(DockerHost):
    """Containers without a guest, as those of images without python3."""

    def options(self) -> Mapping[str, str]:
        return {"link": "engine"}


class EmbeddedHost(Host):
    image = "host"

    def runtime(self) -> Runtime:
        from yaosb_jupyter.tai.runtimes.embedded import EmbeddedRuntime

        return EmbeddedRuntime({}, self.directory / "run", services=self.services)

    async def remove_by_hand(self, spec: EnvironmentSpec, runtime_id: str) -> None:
        """Kills every process of this host that names the sandbox, as `kill -9` by someone who looked at `ps` would."""
        for pid in await asyncio.to_thread(_naming, spec.uid):
            os.kill(pid, signal.SIGKILL)


def _naming(uid: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if uid.encode() in entry.joinpath("cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue  # gone meanwhile
    assert found, f"no process names {uid}"
    return found


HOSTS: dict[str, type[Host]] = {
    "memory": MemoryHost,
    "docker": DockerHost,
    "docker-relay": RelayHost,
    "docker-tls": TlsHost,
    "docker-engine": EngineHost,
    "embedded": EmbeddedHost,
}

_MARKS: dict[str, Any] = {"docker": pytest.mark.docker, "embedded": pytest.mark.embedded}


def hosts(*names: str) -> list[Any]:
    """Parameters for a fixture that gives hosts."""
    marks = {name: _MARKS.get(name.partition("-")[0]) for name in names}
    return [pytest.param(name, marks=[mark] if mark else []) for name, mark in marks.items()]


def host_of(name: str, directory: Path, services: Services = NO_SERVICES) -> Iterator[Host]:
    """The body of such a fixture."""
    if name == "docker-tls":
        require(name)
    found = HOSTS[name](directory, services)
    yield found
    found.close()
