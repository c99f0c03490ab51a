"""FAULTS.md, M. An engine goes away, and a pool is removed or left out: M1, M10, M12."""

from __future__ import annotations

import asyncio

import pytest

from tests.manager.conftest import ENGINE_RIGS, OpenManager
from tests.manager.rigs import MemoryRig, Rig
from tests.manager.waiting import until
from yaosb_jupyter.choices import Status
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.errors import (
    NotRunningError,
    PoolInUseError,
    PoolNotFoundError,
    RuntimeUnavailableError,
)
from yaosb_jupyter.types import PoolSpec


async def test_m1_force_removing_a_pool_completes(open_on_memory: OpenManager, memory_rig: MemoryRig) -> None:
    manager = await open_on_memory(pools=memory_rig.pools("default", "other"))
    for name in ("a", "b", "c"):
        await manager.create(name, pool="other")
    with pytest.raises(PoolInUseError):
        await manager.remove_pool("other")
    memory_rig.engine.delays["remove"] = 0.05
    memory_rig.engine.delays["create"] = 0.05
    creating = asyncio.create_task(manager.create("d", pool="other"))
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        removing = asyncio.create_task(manager.remove_pool("other", force=True))
        await asyncio.sleep(0.01)
        with pytest.raises(PoolNotFoundError):
            await manager.create("e", pool="other")
        with pytest.raises(PoolNotFoundError):
            await creating
        await removing
    assert memory_rig.held() == set()
    assert [pool.name for pool in await manager.pools()] == ["default"]


@pytest.mark.parametrize("rig", ENGINE_RIGS, indirect=True)
async def test_m10_a_sandbox_removed_by_hand_is_told(manager: AsyncManager, rig: Rig) -> None:
    sandbox = await manager.create("lab")
    await sandbox.files.write("kept.txt", "kept")
    runtime_id = (await sandbox.info()).runtime_id
    await asyncio.to_thread(rig.vanish, runtime_id)

    async def told() -> bool:  # killed first, removed then: an engine tells both
        return (await sandbox.info()).status is Status.FAILED

    await until(told)
    with pytest.raises(NotRunningError, match="removed"):
        await sandbox.exec("true")
    # Its files are its owner's: it can be had again.
    await sandbox.start()
    assert (await sandbox.exec(["cat", "kept.txt"])).stdout == "kept"


async def test_m10_state_follows_events_without_a_call(open_on_memory: OpenManager, memory_rig: MemoryRig) -> None:
    manager = await open_on_memory()
    info = await (await manager.create("lab")).info()
    await asyncio.to_thread(memory_rig.engine.die, info.runtime_id, "out of memory")

    async def told() -> bool:
        (now,) = await manager.list()
        return now.status is Status.STOPPED and "out of memory" in now.status_reason

    await until(told)
    with pytest.raises(NotRunningError, match="out of memory"):
        await manager.exec("lab", "true")


async def test_m10_an_engine_that_goes_away_is_told_and_retried(
    open_on_memory: OpenManager, memory_rig: MemoryRig
) -> None:
    manager = await open_on_memory()
    sandbox = await manager.create("lab")
    memory_rig.engine.become_unreachable("it was restarted")

    async def unreachable() -> bool:
        (pool,) = await manager.pools()
        (info,) = await manager.list()
        return not pool.connected and "restarted" in pool.error and not info.reachable

    await until(unreachable)
    with pytest.raises(RuntimeUnavailableError):
        await sandbox.exec("true")
    memory_rig.engine.become_reachable()

    async def back() -> bool:
        return (await manager.pools())[0].connected and (await manager.list())[0].reachable

    await until(back)
    assert (await sandbox.exec("true")).exit_code == 0


async def test_m12_sandboxes_of_a_pool_that_left_the_configuration(
    open_on_memory: OpenManager, memory_rig: MemoryRig
) -> None:
    far = PoolSpec(name="far", address="memory://two")
    first = await open_on_memory(pools=(*memory_rig.pools("default"), far))
    await first.create("kept", pool="far")
    await first.create("dropped", pool="far")
    await first.close()

    second = await open_on_memory()
    infos = await second.list()
    assert [(info.id, info.reachable) for info in infos] == [("kept", False), ("dropped", False)]
    with pytest.raises(RuntimeUnavailableError, match="configuration"):
        await second.exec("kept", "true")
    with pytest.raises(PoolNotFoundError):
        await second.create(pool="far")
    await second.remove("dropped")  # the explicit command
    assert {info.uid for info in await second.list()} == memory_rig.held()

    await second.add_pool(far)
    assert (await second.exec("kept", ["echo", "back"])).stdout == "back\n"
