"""The runtimes that the manager's suite runs on, and ways to act on them behind the manager's back."""

from __future__ import annotations

import os
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.rig.require import TEST_IMAGE
from yaosb_jupyter.core.pool import Host
from yaosb_jupyter.errors import RuntimeUnavailableError
from yaosb_jupyter.tai.runtimes.base import Runtime, RuntimeInfo
from yaosb_jupyter.tai.runtimes.memory import MemoryEngine, MemoryRuntime
from yaosb_jupyter.types import PoolSpec


class Rig(ABC):
    """One runtime. ``root`` is this test's directory."""

    address: str
    image: str = ""

    def __init__(self, root: Path) -> None:
        self.root = root

    def pools(self, *names: str, **fields: Any) -> tuple[PoolSpec, ...]:
        return tuple(PoolSpec(name=name, address=self.address, image=self.image, **fields) for name in names)

    async def opener(self, spec: PoolSpec, *, runtime_dir: Path) -> Host:
        from yaosb_jupyter.tai.client import open_host

        return await open_host(spec, runtime_dir=runtime_dir)

    @abstractmethod
    def vanish(self, runtime_id: str) -> None:
        """Removes an environment as somebody else would."""

    @abstractmethod
    def close(self) -> None:
        """Ends what only this test uses."""


@dataclass(frozen=True)
class MemoryHost:
    runtime: Runtime
    info: RuntimeInfo
    address: str

    async def close(self) -> None:
        await self.runtime.close()


class MemoryRig(Rig):
    """Each address has an engine of its own; the first is ``engine``."""

    address = "memory://one"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.engines: dict[str, MemoryEngine] = {}
        self.engine = self.engine_of(self.address)

    def engine_of(self, address: str) -> MemoryEngine:
        return self.engines.setdefault(address, MemoryEngine())

    async def opener(self, spec: PoolSpec, *, runtime_dir: Path) -> MemoryHost:
        if not spec.address.startswith("memory://"):
            raise RuntimeUnavailableError(f"nothing answers at {spec.address!r}", pool=spec.name)
        runtime = MemoryRuntime(self.engine_of(spec.address))
        return MemoryHost(runtime, await runtime.open(), spec.address)

    def held(self) -> set[str]:
        """The uids of all environments."""
        return {
            environment.spec.uid for engine in self.engines.values() for environment in engine.environments.values()
        }

    def vanish(self, runtime_id: str) -> None:
        for engine in self.engines.values():
            if runtime_id in engine.environments:
                engine.vanish(runtime_id)

    def close(self) -> None:
        for engine in self.engines.values():
            engine.close()


class DockerRig(Rig):
    address = os.environ.get("SANDBOX_TEST_LOCAL_ADDR") or "local"
    image = TEST_IMAGE

    def vanish(self, runtime_id: str) -> None:
        subprocess.run(["docker", "rm", "-f", runtime_id], check=True, capture_output=True, timeout=60)

    def close(self) -> None:
        try:
            data_dir = (self.root / "data" / "id").read_text().strip()
        except FileNotFoundError:
            return
        ours = ["docker", "ps", "-aq", "--filter", f"label=sandbox-data-dir={data_dir}"]
        ids = subprocess.run(ours, check=True, capture_output=True, text=True, timeout=60).stdout.split()
        if ids:
            subprocess.run(["docker", "rm", "-f", *ids], check=True, capture_output=True, timeout=60)


class EmbeddedRig(Rig):
    address = "embedded"

    def vanish(self, runtime_id: str) -> None:
        raise NotImplementedError("the embedded runtime's environments live in the manager's own data directory")

    def close(self) -> None:
        """Nothing: the manager has removed all."""
