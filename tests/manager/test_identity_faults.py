"""FAULTS.md, M. One id is one sandbox, of one owner, within limits: M4, M5, M9."""

from __future__ import annotations

import asyncio

import pytest

from tests.manager.conftest import Managers, OpenManager
from tests.manager.rigs import MemoryRig
from tests.manager.waiting import is_empty, until
from yaosb_jupyter.choices import Status
from yaosb_jupyter.core.controller import Controller
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.service import Caller
from yaosb_jupyter.errors import (
    AlreadyExistsError,
    InvalidOptionError,
    LimitExceededError,
    NotFoundError,
    PermissionDeniedError,
    RuntimeUnavailableError,
)
from yaosb_jupyter.types import PoolLimits


async def _has_one(manager: AsyncManager) -> bool:
    return len(await manager.list()) == 1


async def test_m4_concurrent_creates_never_pass_the_limit(open_on_memory: OpenManager, memory_rig: MemoryRig) -> None:
    manager = await open_on_memory(
        pools=memory_rig.pools("default", limits=PoolLimits(max_total=10)) + memory_rig.pools("other"),
        max_sandboxes=12,
    )
    memory_rig.engine.delays["create"] = 0.02
    pools = ["default", "other"] * 25
    results = await asyncio.gather(*(manager.create(pool=pool) for pool in pools), return_exceptions=True)
    refused = [result for result in results if isinstance(result, BaseException)]
    assert len(refused) == 38
    assert all(isinstance(error, LimitExceededError) for error in refused)
    assert len(memory_rig.held()) == len(await manager.list()) == 12


async def test_m4_a_failed_create_gives_its_slot_back(open_on_memory: OpenManager, memory_rig: MemoryRig) -> None:
    manager = await open_on_memory(max_sandboxes=1)
    for operation in ("create", "start"):
        for after in (False, True):
            memory_rig.engine.fail_next(operation, after=after)
            with pytest.raises(RuntimeUnavailableError):
                await manager.create("lab")
            assert memory_rig.held() == set()
    memory_rig.engine.delays["create"] = 10
    creating = asyncio.create_task(manager.create("lab"))
    await until(lambda: _has_one(manager))
    creating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creating
    memory_rig.engine.delays.clear()
    await until(lambda: is_empty(manager))  # a daemon undoes it after its client has gone on
    await manager.create("lab")


async def test_m5_one_id_is_one_sandbox(manager: AsyncManager) -> None:
    results = await asyncio.gather(*(manager.create("lab") for _ in range(5)), return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    assert len(errors) == 4
    assert all(isinstance(error, AlreadyExistsError) for error in errors)
    assert len(await manager.list()) == 1


async def test_m5_get_or_create_gives_all_callers_the_same(manager: AsyncManager) -> None:
    sandboxes = await asyncio.gather(*(manager.get_or_create("lab") for _ in range(5)))
    assert len({sandbox.uid for sandbox in sandboxes}) == 1
    assert len(await manager.list()) == 1


async def test_m5_get_or_create_waits_out_a_creation_that_fails(
    open_on_memory: OpenManager, memory_rig: MemoryRig
) -> None:
    manager = await open_on_memory()
    memory_rig.engine.delays["create"] = 0.05
    memory_rig.engine.fail_next("create")
    failing = asyncio.create_task(manager.create("lab"))
    await asyncio.sleep(0.01)
    sandbox = await manager.get_or_create("lab")
    with pytest.raises(RuntimeUnavailableError):
        await failing
    assert (await sandbox.exec("true")).exit_code == 0


async def test_get_or_create_finds_by_chat_starts_and_tells_differences(manager: AsyncManager) -> None:
    sandbox = await manager.create("lab", chat="planning", memory="64m")
    await sandbox.stop()
    found = await manager.get_or_create(chat="planning", memory="128m")
    assert found.uid == sandbox.uid
    assert found.last_info.status is Status.RUNNING
    assert any(warning.startswith("memory:") for warning in found.last_info.warnings)


@pytest.mark.parametrize("key", ["managed-by", "sandbox-id", "sandbox-owner", "sandbox-data-dir"])
async def test_m9_reserved_labels_are_refused(open_on_memory: OpenManager, key: str) -> None:
    manager = await open_on_memory()
    with pytest.raises(InvalidOptionError, match=f"{key}.*reserved"):
        await manager.create("lab", labels={key: "mallory"})
    assert not await manager.list()


async def test_another_owners_sandbox_is_not_found(managers_on_memory: Managers) -> None:
    settings = managers_on_memory.settings()
    controller = await Controller.open(settings, opener=managers_on_memory.rig.opener)
    ann, bob = (AsyncManager(controller.for_caller(Caller(owner=owner))) for owner in ("ann", "bob"))
    sandbox = await ann.create("lab")
    for ref in ("lab", sandbox.uid):
        with pytest.raises(NotFoundError, match=ref):
            await bob.get(ref)
    assert not await bob.list()
    for forbidden in (bob.create(owner="ann"), bob.list(owner="ann"), bob.remove_pool("default"), bob.cleanup()):
        with pytest.raises(PermissionDeniedError):
            await forbidden
    await controller.close()
