"""FAULTS.md, M. What a manager finds when it begins: M2, M3, M11, M18, X12."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.manager.clocks import ManualClock
from tests.manager.conftest import OpenManager
from tests.manager.rigs import MemoryRig, Rig
from tests.manager.waiting import until
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.errors import (
    DataDirectoryBusyError,
    InvalidOptionError,
)
from yaosb_jupyter.types import SandboxInfo

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


def _settled(info: SandboxInfo) -> SandboxInfo:
    """Without what goes on by itself."""
    return replace(info, last_active=info.created_at, expires_at=None)


def _as_after_sigkill(data: Path, copy: Path) -> None:
    """The data directory as a killed manager leaves it."""
    shutil.copytree(data, copy, symlinks=True)


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
