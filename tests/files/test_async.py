"""The asynchronous face of paths and files, over a manager of this process and a daemon's."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.contract.workspaces import make_tree, names, tree_of
from tests.manager.conftest import Managers, OpenManager, managers_on_memory, memory_rig, open_on_memory, way
from tests.manager.waiting import until
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import LimitExceededError, PathError
from yaosb_jupyter.types import CopyProgress

__all__ = ["managers_on_memory", "memory_rig", "open_on_memory", "way"]

MIB = 2**20


@pytest.fixture
async def sandbox(open_on_memory: OpenManager) -> AsyncSandbox:
    return await (await open_on_memory()).create("lab")


@pytest.fixture
def workspace(sandbox: AsyncSandbox, managers_on_memory: Managers) -> Path:
    return managers_on_memory.rig.root / "data/sandboxes" / sandbox.uid / "workspace"


async def test_files_are_read_and_written(sandbox: AsyncSandbox) -> None:
    path = sandbox.files / "dir" / "file"
    assert repr(path) == "AsyncSandboxPath('lab:dir/file')"
    assert await path.write_text("one\ntwo\n") == 8
    async with await path.open() as file:
        assert await file.readline() == "one\n"
        assert [line async for line in file] == ["two\n"]
        assert await file.seek(0) == 0
        assert await file.read() == "one\ntwo\n"
    async with await path.open("ab") as binary:
        await binary.write(b"three\n")
        await binary.flush()
        assert await path.read_text() == "one\ntwo\n"
        assert await binary.tell() == 14
    assert await path.read_bytes() == b"one\ntwo\nthree\n"
    await binary.close()


async def test_directories_are_walked_and_changed(sandbox: AsyncSandbox, workspace: Path) -> None:
    root = sandbox.files.root
    await (root / "a/b").mkdir(parents=True)
    assert await (root / "a/c.csv").write_bytes(b"12") == 2
    assert [path.name async for path in (root / "a").iterdir()] == ["b", "c.csv"]
    assert [str(path) async for path in root.glob("*/*.csv")] == ["a/c.csv"]
    assert [str(path) async for path in root.rglob("*.csv")] == ["a/c.csv"]
    assert await (root / "a").is_dir()
    assert await (root / "a/c.csv").is_file()
    assert not await (root / "a/c.csv").is_symlink()
    assert (await (root / "a/c.csv").stat()).size == 2
    moved = await (root / "a/c.csv").rename(root / "d")
    await moved.unlink()
    assert not await moved.exists()
    await (root / "a/b").rmdir()
    await (root / "a").rmtree()
    assert names(workspace) == []


async def test_an_exception_or_a_cancellation_leaves_the_old_file(sandbox: AsyncSandbox, workspace: Path) -> None:
    path = sandbox.files / "file"
    await path.write_text("old")
    with pytest.raises(LookupError):
        async with await path.open("w") as file:
            await file.write("new" * MIB)
            raise LookupError
    begun = asyncio.Event()

    async def write() -> None:
        async with await path.open("wb") as file:
            while True:
                await file.write(b"x" * MIB)
                begun.set()

    writing = asyncio.create_task(write())
    await begun.wait()
    writing.cancel()
    await asyncio.wait([writing], timeout=5)
    assert writing.cancelled()
    assert names(workspace) == ["file"]
    assert await path.read_text() == "old"


async def test_a_cancelled_read_leaves_a_file_that_can_be_read(sandbox: AsyncSandbox, workspace: Path) -> None:
    (workspace / "big").touch()
    os.truncate(workspace / "big", 1 << 33)
    async with await (sandbox.files / "big").open("rb") as file:
        reading = asyncio.create_task(file.read(1 << 33))
        await asyncio.sleep(0.05)  # into the middle of it, or before: both are to be borne
        reading.cancel()
        await asyncio.wait([reading], timeout=5)
        assert reading.cancelled()
        await file.seek(5)
        assert await file.read(3) == b"\0\0\0"


async def test_trees_are_copied_both_ways(sandbox: AsyncSandbox, tmp_path: Path) -> None:
    made = make_tree(tmp_path / "tree")
    steps: list[CopyProgress] = []
    up = await sandbox.copy_to(tmp_path / "tree", sandbox.files / "copy", progress=steps.append)
    down = await sandbox.copy_from(sandbox.files / "copy", str(tmp_path / "back"), progress=steps.append)
    assert tree_of(tmp_path / "back") == made
    assert (up.size, up.files) == (down.size, down.files) == (steps[-1].done, len(made) - 3)


async def test_a_copy_to_here_brings_no_more_than_is_allowed(
    sandbox: AsyncSandbox, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "tree").mkdir()
    for name in ("a", "b", "c"):
        (workspace / "tree" / name).write_bytes(b"x" * MIB)
    with pytest.raises(LimitExceededError, match=r"more than 2 MiB .*max_size"):
        await sandbox.copy_from("tree", tmp_path / "back", max_size="2m")
    for few in (1, 2, 3):  # the directory is one
        with pytest.raises(LimitExceededError, match=rf"more than {few} files .*max_files"):
            await sandbox.copy_from("tree", tmp_path / "few", max_files=few)
    assert not (tmp_path / "back").exists()
    assert not (tmp_path / "few").exists()
    assert (await sandbox.copy_from("tree", tmp_path / "all", max_size="3m", max_files=4)).files == 3


async def test_a_hole_in_a_file_is_no_way_around_the_default_limit(
    sandbox: AsyncSandbox, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "hole").touch()
    os.truncate(workspace / "hole", 1 << 40)  # takes no room inside
    with pytest.raises(LimitExceededError, match="16 GiB"):
        await sandbox.copy_from("hole", tmp_path / "hole")
    assert not (tmp_path / "hole").exists()


async def test_m13_an_open_file_that_is_written_keeps_the_sandbox(open_on_memory: OpenManager) -> None:
    manager = await open_on_memory()
    sandbox = await manager.create("busy", idle_timeout=0.3, lifecycle="long-running")
    async with await (sandbox.files / "file").open("wb") as file:
        await file.write(b"x" * 3 * MIB)
        await asyncio.sleep(0.6)  # longer than it may be idle
        await manager.cleanup()
        await file.write(b"y")
        assert (await sandbox.info()).status.value == "running"

    async def is_stopped() -> bool:
        await manager.cleanup()
        return (await sandbox.info()).status.value == "stopped"

    await until(is_stopped)


async def test_x11_a_path_of_the_host_is_none_of_the_sandboxs(sandbox: AsyncSandbox, tmp_path: Path) -> None:
    for path in ("/etc", "../x"):
        with pytest.raises(PathError):
            await sandbox.copy_from(path, tmp_path / "back")
        with pytest.raises(PathError):
            await sandbox.copy_to(tmp_path, path)
