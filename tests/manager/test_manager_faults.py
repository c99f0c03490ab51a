"""FAULTS.md, M: what the manager must not get wrong. On every runtime where that can be made to happen."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.manager.clocks import ManualClock
from tests.manager.conftest import ENGINE_RIGS, Managers, OpenManager
from tests.manager.rigs import MemoryRig, Rig
from tests.manager.waiting import until
from yaosb_jupyter.choices import Status
from yaosb_jupyter.core.controller import Controller
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.core.service import Caller
from yaosb_jupyter.errors import (
    AlreadyExistsError,
    DataDirectoryBusyError,
    InvalidOptionError,
    LimitExceededError,
    NotFoundError,
    NotRunningError,
    PermissionDeniedError,
    PoolInUseError,
    PoolNotFoundError,
    RuntimeUnavailableError,
    SandboxError,
    SandboxLostError,
)
from yaosb_jupyter.types import PoolLimits, PoolSpec, SandboxInfo


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


FIELDS = {
    "lifecycle": "long-running",
    "idle_timeout": "1h",
    "max_lifetime": "3d",
    "stop_timeout": 2.5,
    "labels": {"team": "blue"},
    "chat": "planning",
    "memory": "64m",
    "cpus": 0.5,
    "pids": 99,
    "vnc": True,
}


@pytest.mark.parametrize("kept", ["record", "labels"])
async def test_m2_m3_recovery_restores_everything(
    open_manager: OpenManager, rig: Rig, tmp_path: Path, kept: str
) -> None:
    first = await open_manager()
    before = await (await first.create("lab", owner="ann@example.org", **FIELDS)).info()
    await first.close()
    if kept == "labels":
        (tmp_path / "data" / "sandboxes" / before.uid / "record.json").unlink()
    second = await open_manager()
    after = await (await second.get(before.uid)).info()
    assert _settled(after) == _settled(before)


def _settled(info: SandboxInfo) -> SandboxInfo:
    """Without what goes on by itself."""
    return replace(info, last_active=info.created_at, expires_at=None)


async def test_m3_age_goes_on_after_recovery(open_on_memory: OpenManager) -> None:
    clock = ManualClock()
    first = await open_on_memory(clock=clock)
    await first.create("lab", max_lifetime="1h")
    clock.advance(50 * 60)
    await first.close()
    clock.advance(20 * 60)
    second = await open_on_memory(clock=clock)
    await until(lambda: _is_empty(second))


async def test_m3_the_time_of_last_use_is_kept_over_a_restart(open_on_memory: OpenManager) -> None:
    clock = ManualClock()
    first = await open_on_memory(clock=clock)
    sandbox = await first.create("lab", idle_timeout="1h")
    clock.advance(60)
    await sandbox.exec("true")
    used = (await sandbox.info()).last_active
    clock.advance(10 * 60)
    await first.close()
    clock.advance(5 * 60)
    second = await open_on_memory(clock=clock)
    again = await second.get("lab")
    assert again.last_info.last_active == used
    await again.exec("true")
    assert (await again.info()).last_active == clock.now()


async def test_m14_an_end_by_age_is_not_told_as_idleness(open_on_memory: OpenManager) -> None:
    clock = ManualClock()
    manager = await open_on_memory(clock=clock)
    sandbox = await manager.create("lab", max_lifetime="1h")
    running = asyncio.create_task(sandbox.exec("echo on > there; sleep 60"))
    await until(lambda: _has(sandbox, "there"))
    clock.advance(2 * 3600)
    await manager.cleanup()
    with pytest.raises(SandboxLostError, match="its max_lifetime of 1 h was over"):
        await running
    await until(lambda: _is_empty(manager))


async def _has(sandbox: AsyncSandbox, path: str) -> bool:
    return path in [file.name for file in await sandbox.files.list()]


async def _is_empty(manager: AsyncManager) -> bool:
    return not await manager.list()


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
    await until(lambda: _is_empty(manager))  # a daemon undoes it after its client has gone on
    await manager.create("lab")


async def _has_one(manager: AsyncManager) -> bool:
    return len(await manager.list()) == 1


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
    await until(lambda: _is_empty(manager))
    assert memory_rig.held() == set()


async def test_m7_a_removal_refused_to_the_reaper_is_retried(
    open_on_memory: OpenManager, memory_rig: MemoryRig
) -> None:
    manager = await open_on_memory()
    for _ in range(2):
        memory_rig.engine.fail_next("remove", SandboxError("busy"))
    await manager.create("lab", idle_timeout=0.1)
    await until(lambda: _is_empty(manager))
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
    await until(lambda: _is_empty(second))
    assert memory_rig.held() == set()


async def test_m8_an_idle_long_running_sandbox_is_stopped_once(
    open_on_memory: OpenManager, memory_rig: MemoryRig
) -> None:
    clock = ManualClock()
    manager = await open_on_memory(clock=clock)
    sandbox = await manager.create("lab", lifecycle="long-running", idle_timeout="1h")
    await sandbox.files.write("kept.txt", "kept")
    clock.advance(3601)
    assert list(await manager.cleanup()) == ["lab"]
    info = await sandbox.info()
    assert info.status is Status.STOPPED
    assert "idle" in info.status_reason
    clock.advance(100 * 3600)
    memory_rig.engine.fail_next("stop")  # nobody calls it
    assert list(await manager.cleanup()) == []
    assert await sandbox.files.read_text("kept.txt") == "kept"


@pytest.mark.parametrize("key", ["managed-by", "sandbox-id", "sandbox-owner", "sandbox-data-dir"])
async def test_m9_reserved_labels_are_refused(open_on_memory: OpenManager, key: str) -> None:
    manager = await open_on_memory()
    with pytest.raises(InvalidOptionError, match=f"{key}.*reserved"):
        await manager.create("lab", labels={key: "mallory"})
    assert not await manager.list()


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


@pytest.mark.parametrize("after", ["intent", "create", "start"])
async def test_m11_a_creation_cut_short_by_a_kill_is_swept(
    open_on_memory: OpenManager, memory_rig: MemoryRig, tmp_path: Path, after: str
) -> None:
    first = await open_on_memory()
    memory_rig.engine.delays["start" if after == "create" else "inspect" if after == "start" else "create"] = 60
    creating = asyncio.create_task(first.create("lab"))

    async def reached() -> bool:
        statuses = {each.status for each in memory_rig.engine.environments.values()}
        records = list((tmp_path / "data" / "sandboxes").glob("*/record.json"))
        return bool(records) and statuses == {"intent": set(), "create": {"created"}, "start": {"running"}}[after]

    await until(reached)
    _as_after_sigkill(tmp_path / "data", tmp_path / "copy")
    memory_rig.engine.delays.clear()
    async with AsyncManager.open(
        data_dir=tmp_path / "copy", runtime_dir=tmp_path / "run2", pools=memory_rig.pools("default"),
        opener=memory_rig.opener,
    ) as second:  # fmt: skip
        assert not await second.list()
        assert memory_rig.held() == set()
        assert list((tmp_path / "copy" / "sandboxes").iterdir()) == []
    creating.cancel()
    await asyncio.gather(creating, return_exceptions=True)


def _as_after_sigkill(data: Path, copy: Path) -> None:
    """The data directory as a killed manager leaves it."""
    shutil.copytree(data, copy, symlinks=True)


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


async def test_m13_what_is_in_flight_keeps_it_alive(open_on_memory: OpenManager) -> None:
    clock = ManualClock()
    manager = await open_on_memory(clock=clock)
    sandbox = await manager.create("lab", idle_timeout="10m")
    async with sandbox.stream("read line", stdin=True) as stream:
        clock.advance(3600)
        assert list(await manager.cleanup()) == []
        await stream.send("done\n")
        assert (await stream.wait()).exit_code == 0
    clock.advance(599)
    assert list(await manager.cleanup()) == []

    upload_goes_on = asyncio.Event()

    async def slow_content():  # type: ignore[no-untyped-def]
        yield b"first"
        await upload_goes_on.wait()
        yield b"second"

    uploading = asyncio.create_task(sandbox.files.write("big", slow_content()))
    await asyncio.sleep(0.05)
    clock.advance(3600)
    assert list(await manager.cleanup()) == []
    upload_goes_on.set()
    await uploading
    clock.advance(601)
    assert list(await manager.cleanup()) == ["lab"]


async def test_m14_looking_is_not_use(open_on_memory: OpenManager) -> None:
    clock = ManualClock()
    manager = await open_on_memory(clock=clock)
    sandbox = await manager.create("lab", idle_timeout="10m")
    for _ in range(6):
        clock.advance(101)
        await sandbox.info()
        await manager.list()
        await manager.pools()
        await sandbox.stats()
        await sandbox.heartbeat(active=False, process_count=0)
        async for _chunk in sandbox.logs():
            pass
    assert list(await manager.cleanup()) == ["lab"]


async def test_m15_looking_and_connecting_leave_timeouts_alone(open_on_memory: OpenManager) -> None:
    clock = ManualClock()
    manager = await open_on_memory(clock=clock)
    sandbox = await manager.create("lab", idle_timeout="10m", max_lifetime="1h")
    before = await sandbox.info()
    clock.advance(60)
    again = await (await manager.get("lab")).info()
    assert again.expires_at == before.expires_at
    await manager.get_or_create("lab")
    after = await sandbox.info()
    assert (after.idle_timeout, after.max_lifetime) == (600, 3600)


async def test_m16_a_jump_of_the_wall_clock_expires_nothing(open_on_memory: OpenManager) -> None:
    clock = ManualClock()
    manager = await open_on_memory(clock=clock)
    await manager.create("lab", idle_timeout="10m", max_lifetime="1d")
    for jump in (timedelta(days=400), timedelta(days=-800)):
        clock.wall += jump
        assert list(await manager.cleanup()) == []
        assert len(await manager.list()) == 1


async def test_m17_fractions_count_and_zero_means_never(open_on_memory: OpenManager) -> None:
    clock = ManualClock()
    manager = await open_on_memory(clock=clock)
    await manager.create("short", idle_timeout=0.25)
    never = await manager.create("never", idle_timeout=0)
    assert (await never.info()).expires_at is None
    clock.advance(0.2)
    assert list(await manager.cleanup()) == []
    clock.advance(0.1)
    assert list(await manager.cleanup()) == ["short"]
    clock.advance(10**9)
    assert list(await manager.cleanup()) == []
    with pytest.raises(InvalidOptionError, match="idle_timeout"):
        await manager.create("negative", idle_timeout=-1)


async def test_m18_one_owner_for_each_data_directory(open_on_memory: OpenManager) -> None:
    await open_on_memory()
    with pytest.raises(DataDirectoryBusyError, match=r"process \d+"):
        await open_on_memory()


async def test_m18_another_data_directorys_sandboxes_are_never_touched(
    open_on_memory: OpenManager, memory_rig: MemoryRig, tmp_path: Path
) -> None:
    ours = await open_on_memory()
    theirs = await AsyncManager.open(
        data_dir=tmp_path / "theirs",
        runtime_dir=tmp_path / "run2",
        pools=memory_rig.pools("default"),
        opener=memory_rig.opener,
    )
    sandbox = await theirs.create("lab", idle_timeout=0)
    await ours.create("lab", idle_timeout=0)  # the same name: no conflict either
    await theirs.close()
    await ours.cleanup()
    await ours.close()
    ours = await open_on_memory()
    assert len(await ours.list()) == 1
    await ours.remove("lab")
    assert memory_rig.held() == {sandbox.uid}


async def test_x12_an_id_cannot_leave_the_data_directory(open_on_memory: OpenManager, tmp_path: Path) -> None:
    manager = await open_on_memory()
    for bad in ("../x", "a/b", "..", ".", "/etc", "a\0b", "a..b"):
        with pytest.raises(InvalidOptionError, match="id="):
            await manager.create(bad)
    sandbox = await manager.create("lab", owner="../../etc")
    link = tmp_path / "data" / "by-owner" / "%2E.%2F..%2Fetc" / "lab"
    assert link.resolve() == tmp_path / "data" / "sandboxes" / sandbox.uid
    await sandbox.remove()
    assert list((tmp_path / "data" / "by-owner").iterdir()) == []


async def test_records_hold_a_schema_and_keep_unknown_fields(open_on_memory: OpenManager, tmp_path: Path) -> None:
    first = await open_on_memory()
    sandbox = await first.create("lab")
    await first.close()
    path = tmp_path / "data" / "sandboxes" / sandbox.uid / "record.json"
    content = json.loads(path.read_text())
    assert content["schema"] == 1
    content["future"] = {"field": 1}
    path.write_text(json.dumps(content))
    second = await open_on_memory()
    await (await second.get("lab")).stop()
    assert json.loads(path.read_text())["future"] == {"field": 1}


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
