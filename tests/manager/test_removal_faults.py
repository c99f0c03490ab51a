"""FAULTS.md, M. A removal that is refused: M7."""

from __future__ import annotations

import pytest

from tests.manager.conftest import OpenManager
from tests.manager.rigs import MemoryRig
from tests.manager.waiting import is_empty, until
from yaosb_jupyter.choices import Status
from yaosb_jupyter.errors import (
    SandboxError,
)


async def test_m7_a_refused_removal_stays_visible_and_is_retried(
    open_on_memory: OpenManager, memory_rig: MemoryRig
) -> None:
    manager = await open_on_memory()
    sandbox = await manager.create("lab")
    memory_rig.engine.fail_next("remove", SandboxError("device or resource busy"))
    with pytest.raises(SandboxError, match="busy"):
        await sandbox.remove()
    (info,) = await manager.list()
    assert info.status is Status.FAILED
    assert "busy" in info.status_reason
    await until(lambda: is_empty(manager))
    assert memory_rig.held() == set()


async def test_m7_a_removal_refused_to_the_reaper_is_retried(
    open_on_memory: OpenManager, memory_rig: MemoryRig
) -> None:
    manager = await open_on_memory()
    for _ in range(2):
        memory_rig.engine.fail_next("remove", SandboxError("busy"))
    await manager.create("lab", idle_timeout=0.1)
    await until(lambda: is_empty(manager))
    assert memory_rig.held() == set()


async def test_m7_a_refused_removal_is_retried_after_a_restart(
    open_on_memory: OpenManager, memory_rig: MemoryRig
) -> None:
    first = await open_on_memory()
    sandbox = await first.create("lab")
    memory_rig.engine.fail_next("remove", SandboxError("busy"))
    with pytest.raises(SandboxError):
        await sandbox.remove()
    await first.close()
    second = await open_on_memory()
    await until(lambda: is_empty(second))
    assert memory_rig.held() == set()
