"""The hosts that the contract is checked on: how to open a runtime there, and how to go behind its back."""

from __future__ import annotations

import asyncio
import os
import signal
from abc import ABC, abstractmethod
from pathlib import Path

from tests.rig.require import TEST_IMAGE
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec, Runtime
from yaosb_jupyter.tai.runtimes.memory import MemoryEngine, MemoryRuntime


class Host(ABC):
    """One host. ``image`` has sh and python3; what it keeps is under ``directory``: short, and world-readable."""

    image: str

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.joinpath("run").mkdir()

    @abstractmethod
    def runtime(self) -> Runtime:
        """A new runtime object over the same host, as after a restart of the manager."""

    @abstractmethod
    async def remove_by_hand(self, spec: EnvironmentSpec, runtime_id: str) -> None:
        """Ends an environment as a person at the host would, without any runtime."""

    def close(self) -> None:  # noqa: B027 - most hosts keep nothing running
        """Ends what the host itself keeps running."""


class MemoryHost(Host):
    image = "memory"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.engine = MemoryEngine()

    def runtime(self) -> Runtime:
        return MemoryRuntime(self.engine)

    async def remove_by_hand(self, spec: EnvironmentSpec, runtime_id: str) -> None:
        await asyncio.to_thread(self.engine.vanish, runtime_id)

    def close(self) -> None:
        self.engine.close()


class DockerHost(Host):
    image = TEST_IMAGE

    def runtime(self) -> Runtime:
        from yaosb_jupyter.tai.runtimes.docker import DockerRuntime

        address = os.environ.get("SANDBOX_TEST_LOCAL_ADDR") or "local"
        return DockerRuntime(address, {"probe_image": TEST_IMAGE}, self.directory / "run")

    async def remove_by_hand(self, spec: EnvironmentSpec, runtime_id: str) -> None:
        done = await asyncio.create_subprocess_exec("docker", "rm", "-f", runtime_id, stdout=asyncio.subprocess.DEVNULL)
        assert await done.wait() == 0


class EmbeddedHost(Host):
    image = "host"

    def runtime(self) -> Runtime:
        from yaosb_jupyter.tai.runtimes.embedded import EmbeddedRuntime

        return EmbeddedRuntime({}, self.directory / "run")

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


HOSTS: dict[str, type[Host]] = {"memory": MemoryHost, "docker": DockerHost, "embedded": EmbeddedHost}
