"""Pools that answer, do not, come and go."""

from __future__ import annotations

import pytest

from tests.manager.conftest import OpenManager
from tests.manager.rigs import MemoryRig
from tests.manager.waiting import until
from yaosb_jupyter.errors import (
    AlreadyExistsError,
    NotAvailableError,
    PoolNotFoundError,
    RuntimeUnavailableError,
)
from yaosb_jupyter.types import PoolSpec, PullProgress

NOWHERE = PoolSpec(name="nowhere", address="tcp://nowhere")
TWO = PoolSpec(name="two", address="memory://two")


async def test_a_pool_that_does_not_answer_is_marked_with_its_cause(
    open_on_memory: OpenManager, memory_rig: MemoryRig
) -> None:
    manager = await open_on_memory(pools=(*memory_rig.pools("default"), NOWHERE))
    near, nowhere = await manager.pools()
    assert (near.connected, near.runtime, near.error) == (True, "memory", "")
    assert not nowhere.connected
    assert "nothing answers" in nowhere.error
    with pytest.raises(RuntimeUnavailableError, match="nothing answers"):
        await manager.create(pool="nowhere")


async def test_no_pool_at_all_is_told_with_every_cause(open_on_memory: OpenManager) -> None:
    with pytest.raises(NotAvailableError, match=r"nowhere: .*nothing answers"):
        await open_on_memory(pools=(NOWHERE,))


async def test_a_pool_that_answers_later_is_used_then(open_on_memory: OpenManager, memory_rig: MemoryRig) -> None:
    memory_rig.engine_of("memory://two").become_unreachable()
    manager = await open_on_memory(pools=(*memory_rig.pools("default"), TWO))
    memory_rig.engine_of("memory://two").become_reachable()

    async def connected() -> bool:
        return all(pool.connected for pool in await manager.pools())

    await until(connected)
    await manager.create(pool="two")


async def test_adding_a_pool_that_does_not_answer_adds_nothing(open_on_memory: OpenManager) -> None:
    manager = await open_on_memory()
    with pytest.raises(RuntimeUnavailableError):
        await manager.add_pool(NOWHERE)
    assert [pool.name for pool in await manager.pools()] == ["default"]
    with pytest.raises(AlreadyExistsError):
        await manager.add_pool(PoolSpec(name="default", address="memory://two"))


async def test_pools_come_and_go(open_on_memory: OpenManager) -> None:
    manager = await open_on_memory()
    assert (await manager.add_pool(TWO)).connected
    await manager.create("a", pool="two")
    await manager.remove_pool("two", force=True)
    assert not await manager.list()
    with pytest.raises(PoolNotFoundError, match="configured: default"):
        await manager.create(pool="two")
    await manager.remove_pool("default")
    with pytest.raises(PoolNotFoundError, match="configured: none"):
        await manager.create()


async def test_images_are_asked_for_and_pulled_with_progress(
    open_on_memory: OpenManager, memory_rig: MemoryRig
) -> None:
    manager = await open_on_memory()
    memory_rig.engine.images = {"there"}
    told: list[PullProgress] = []
    await manager.create("a", image="there", progress=told.append)
    assert told == []  # it was there: nothing is pulled
    assert await manager.image_exists("there")
    assert not await manager.image_exists("missing")
    await manager.pull_image("there", progress=told.append)
    assert [step.layer for step in told] == ["layer"]
