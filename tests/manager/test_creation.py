"""Creating: what is refused, what fails half way, and what the main process has to do with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.manager.conftest import Managers, OpenManager
from tests.manager.rigs import MemoryRig
from yaosb_jupyter.choices import Status
from yaosb_jupyter.core.controller import Controller
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.service import Caller
from yaosb_jupyter.errors import (
    ImageNotFoundError,
    InvalidOptionError,
    NotRunningError,
    PermissionDeniedError,
)


async def test_a_main_process_that_ends_at_once_is_told_with_its_last_words(
    open_on_memory: OpenManager, memory_rig: MemoryRig
) -> None:
    manager = await open_on_memory()
    memory_rig.engine.delays["inspect"] = 0.3  # long enough for it to end
    with pytest.raises(NotRunningError, match="it said: no such model"):
        await manager.create(cmd="echo no such model >&2; exit 3")
    assert not await manager.list()
    assert memory_rig.held() == set()


async def test_an_image_that_is_nowhere(open_on_memory: OpenManager, memory_rig: MemoryRig) -> None:
    manager = await open_on_memory()
    memory_rig.engine.images = set()
    with pytest.raises(ImageNotFoundError):
        await manager.create("lab")
    assert not await manager.list()


async def test_without_start_it_is_created_and_can_be_started(manager: AsyncManager) -> None:
    sandbox = await manager.create("lab", start=False)
    assert (await sandbox.info()).status is Status.CREATED
    await sandbox.files.write("in.txt", "before")
    assert (await sandbox.start()).status is Status.RUNNING
    assert (await sandbox.exec(["cat", "in.txt"])).stdout == "before"
    assert (await sandbox.start()).status is Status.RUNNING
    assert (await sandbox.stop()).status is Status.STOPPED
    assert (await sandbox.stop()).status is Status.STOPPED


async def test_an_id_is_made_where_none_is_given(open_on_memory: OpenManager) -> None:
    manager = await open_on_memory()
    assert (await manager.create(owner="ann", chat="planning")).id == "ann-planning"
    assert (await manager.create()).id.startswith("sb-")


async def test_a_directory_of_the_host_as_workspace(open_on_memory: OpenManager, tmp_path: Path) -> None:
    manager = await open_on_memory()
    shared = tmp_path / "shared"
    shared.mkdir()
    sandbox = await manager.create(workspace=str(shared))
    await sandbox.exec("echo kept > out.txt", check=True)
    await sandbox.remove()
    assert (shared / "out.txt").read_text() == "kept\n"
    for bad in ("relative", str(tmp_path / "missing"), str(tmp_path), str(tmp_path / "data" / "sandboxes")):
        with pytest.raises(InvalidOptionError, match="workspace="):
            await manager.create(workspace=bad)


async def test_only_the_managers_own_user_may_name_a_directory_of_the_host(
    managers_on_memory: Managers, tmp_path: Path
) -> None:
    settings = managers_on_memory.settings()
    controller = await Controller.open(settings, opener=managers_on_memory.rig.opener)
    stranger = AsyncManager(controller.for_caller(Caller(owner="stranger")))
    with pytest.raises(PermissionDeniedError, match="workspace"):
        await stranger.create(workspace=str(tmp_path))
    await controller.close()
