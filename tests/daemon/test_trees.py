"""Trees through the daemon: the client reads and writes its own files, the daemon those of the workspace."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.contract.workspaces import make_tree, tree_of
from tests.daemon.conftest import Station
from tests.manager.waiting import until
from yaosb_jupyter.blocking.entry import connect as connect_blocking
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.errors import NotFoundError, PathError, UnavailableError
from yaosb_jupyter.types import CopyProgress

MIB = 2**20


async def test_a_tree_goes_in_and_comes_back_as_it_is(manager: AsyncManager, tmp_path: Path) -> None:
    made = make_tree(tmp_path / "tree")
    sandbox = await manager.create()
    steps: list[CopyProgress] = []
    up = await sandbox.copy_to(tmp_path / "tree", "a/copy", progress=steps.append)
    assert steps[-1].done == steps[-1].total == up.size
    down = await sandbox.copy_from("a/copy", tmp_path / "back", progress=steps.append)
    assert tree_of(tmp_path / "back") == made
    assert (up.files, up.size) == (down.files, down.size)


def test_the_blocking_face_copies_trees(station: Station, tmp_path: Path) -> None:
    made = make_tree(tmp_path / "tree")
    with connect_blocking() as manager:
        sandbox = manager.create()
        assert sandbox.copy_to(str(tmp_path / "tree"), "copy").target == "copy"
        assert sandbox.copy_from("copy", str(tmp_path / "back")).target == str(tmp_path / "back")
    assert tree_of(tmp_path / "back") == made


async def test_x11_a_path_of_the_host_is_none_of_the_daemons(manager: AsyncManager, tmp_path: Path) -> None:
    sandbox = await manager.create()
    (tmp_path / "file").write_bytes(b"x")
    for path in (str(tmp_path / "file"), "../../../etc", "/etc"):
        with pytest.raises(PathError):
            await sandbox.copy_from(path, tmp_path / "back")
        with pytest.raises(PathError):
            await sandbox.copy_to(tmp_path / "file", path)
    assert not (tmp_path / "back").exists()


async def test_what_is_missing_here_or_there_is_told(manager: AsyncManager, tmp_path: Path) -> None:
    sandbox = await manager.create()
    with pytest.raises(NotFoundError, match="nothing-here"):
        await sandbox.copy_to(tmp_path / "nothing-here", "copy")
    with pytest.raises(NotFoundError, match="nothing-there"):
        await sandbox.copy_from("nothing-there", tmp_path / "back")


async def test_x10_a_big_tree_is_never_held_in_memory(station: Station, manager: AsyncManager, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    for number in range(8):
        (tmp_path / f"tree/{number}").write_bytes(os.urandom(MIB) * 16)
    sandbox = await manager.create()
    before = _peak(station.pid), _peak(os.getpid())
    await sandbox.copy_to(tmp_path / "tree", "copy")
    await sandbox.copy_from("copy", tmp_path / "back")
    assert _peak(station.pid) - before[0] < 32 * MIB
    assert _peak(os.getpid()) - before[1] < 32 * MIB


def _peak(pid: int | None) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel tells no peak")


async def test_x10_a_cancelled_upload_leaves_whole_files_only(manager: AsyncManager, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    for number in range(40):
        (tmp_path / f"tree/{number:02}").write_bytes(b"x" * (2 * MIB))
    sandbox = await manager.create()
    begun = asyncio.Event()

    def tell(step: CopyProgress) -> None:
        if step.done > 4 * MIB:
            begun.set()

    copying = asyncio.ensure_future(sandbox.copy_to(tmp_path / "tree", "copy", progress=tell))
    await begun.wait()
    copying.cancel()
    await asyncio.wait([copying])
    assert copying.cancelled()

    async def settled() -> bool:
        try:
            found = await sandbox.files.list("copy")
        except NotFoundError:
            return False
        return bool(found) and all(info.size == 2 * MIB and info.name.isdigit() for info in found)

    await until(settled)
    assert len(await sandbox.files.list("copy")) < 40


async def test_a_daemon_lost_meanwhile_is_told(station: Station, manager: AsyncManager, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    os.truncate(tmp_path / "file", 1 << 30)
    sandbox = await manager.create()
    begun = asyncio.Event()
    copying = asyncio.ensure_future(
        sandbox.copy_to(tmp_path / "file", "copy", progress=lambda step: begun.set() if step.done else None)
    )
    await begun.wait()
    await asyncio.to_thread(station.kill)
    with pytest.raises(UnavailableError):
        await copying
