"""The manager's suite runs over every way to reach a manager and every runtime.

``open_manager(**settings)`` opens one on this test's data directory; the test closes it, or the fixture does. ``rig``
reaches behind its back.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from tests.manager.daemon import through_daemon
from tests.manager.rigs import DockerRig, EmbeddedRig, MemoryRig, Rig
from yaosb_jupyter.core.clock import Clock
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.settings import Settings, load_settings

OpenManager = Callable[..., Awaitable[AsyncManager]]
Way = Callable[..., Awaitable[AsyncManager]]

RIGS = [
    pytest.param(MemoryRig, id="memory"),
    pytest.param(DockerRig, id="docker", marks=pytest.mark.docker),
    pytest.param(EmbeddedRig, id="embedded", marks=pytest.mark.embedded),
]
ENGINE_RIGS = RIGS[:2]
"""Those whose environments somebody else can remove: an embedded one lives in the manager's own directories."""


@pytest.fixture(params=RIGS)
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    """A runtime, with ways to act behind the manager's back."""
    rig = request.param(tmp_path)
    yield rig
    rig.close()


@pytest.fixture
def memory_rig(tmp_path: Path) -> Iterator[MemoryRig]:
    """For faults that only the memory runtime can be told to have."""
    rig = MemoryRig(tmp_path)
    yield rig
    rig.close()


@dataclass
class Managers:
    """Opens managers on one data directory, by themselves or behind a daemon's socket."""

    rig: Rig
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    way: Way = field(default=AsyncManager.open)

    def settings(self, **overrides: Any) -> Settings:
        given = {"pools": self.rig.pools("default"), "idle_timeout": 0, "stop_timeout": 1, **overrides}
        return load_settings(
            environ={}, file=os.devnull, data_dir=self.rig.root / "data", runtime_dir=self.rig.root / "run", **given
        )

    async def open(self, *, clock: Clock | None = None, **overrides: Any) -> AsyncManager:
        manager = await self.way(self.settings(**overrides), opener=self.rig.opener, clock=clock)
        self.stack.push_async_callback(manager.close)
        return manager


@pytest.fixture(params=[AsyncManager.open, through_daemon], ids=["direct", "daemon"])
def way(request: pytest.FixtureRequest) -> Way:
    """How a manager is reached."""
    return cast(Way, request.param)


@pytest.fixture
async def open_manager(rig: Rig, way: Way) -> AsyncIterator[OpenManager]:
    async with AsyncExitStack() as stack:
        yield Managers(rig, stack, way).open
    if not isinstance(rig, MemoryRig):
        await remove_all(rig)


async def remove_all(rig: Rig) -> None:
    """Leaves nothing on an engine that outlives this test."""
    async with AsyncManager.open(Managers(rig).settings(), opener=rig.opener) as manager:
        for info in await manager.list():
            await manager.remove(info.uid)


@pytest.fixture
async def manager(open_manager: OpenManager) -> AsyncManager:
    return await open_manager()


@pytest.fixture
async def managers_on_memory(memory_rig: MemoryRig, way: Way) -> AsyncIterator[Managers]:
    async with AsyncExitStack() as stack:
        yield Managers(memory_rig, stack, way)


@pytest.fixture
def open_on_memory(managers_on_memory: Managers) -> OpenManager:
    return managers_on_memory.open
