"""What is told of files and directories, and making, moving and removing them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.contract.conftest import DIRECT, RIGS
from tests.contract.workspaces import names, read, write
from tests.rig.require import require
from yaosb_jupyter.errors import PathError
from yaosb_jupyter.tai.volumes.base import Volume


async def test_the_mode_is_as_asked_and_kept_when_replaced(volume: Volume, hostile: Path) -> None:
    for mode in (0o600, 0o644, 0o755):
        await write(volume, f"file-{mode:o}", b"x", mode=mode)
        assert stat.S_IMODE((hostile / f"file-{mode:o}").stat().st_mode) == mode
    await write(volume, "file-755", b"y")
    assert stat.S_IMODE((hostile / "file-755").stat().st_mode) == 0o755
    await write(volume, "set-user-id", b"x", mode=0o4755)
    assert stat.S_IMODE((hostile / "set-user-id").stat().st_mode) == 0o755
    await write(volume, "new/default", b"x")
    assert stat.S_IMODE((hostile / "new/default").stat().st_mode) == 0o644
    assert stat.S_IMODE((hostile / "new").stat().st_mode) == 0o755


@pytest.mark.parametrize("rig", [*DIRECT, "daemon"], indirect=True)  # an engine's are the container's user's
async def test_what_is_made_belongs_to_the_workspaces_owner(volume: Volume, hostile: Path) -> None:
    require("root")
    os.chown(hostile, 12345, 54321)
    await write(volume, "a/b/file", b"x")
    await volume.mkdir("c/d")
    for path in ("a", "a/b", "a/b/file", "c", "c/d"):
        status = (hostile / path).stat()
        assert (status.st_uid, status.st_gid) == (12345, 54321)


async def test_what_is_told_of_a_file(volume: Volume, hostile: Path) -> None:
    await write(volume, "dir/file", b"12345", mode=0o640)
    os.utime(hostile / "dir/file", (1000, 2000.5))
    info = await volume.stat("dir/file")
    assert (info.name, info.path, info.size, info.mtime) == ("file", "dir/file", 5, 2000.5)
    assert (stat.S_IMODE(info.mode), info.is_dir, info.link_target) == (0o640, False, None)
    (hostile / "dir/link").symlink_to("file")
    told = {entry.name: entry for entry in await volume.list("dir")}
    assert told["file"] == info
    assert told["link"].link_target == "file"
    assert (await volume.stat("dir")).is_dir


async def test_list_is_sorted(volume: Volume) -> None:
    for name in ("b", "a", "C", "ä"):
        await write(volume, name, b"")
    assert [entry.name for entry in await volume.list()] == sorted(["b", "a", "C", "ä"])


async def test_mkdir_makes_parents_and_is_no_op_where_it_exists(volume: Volume, hostile: Path) -> None:
    await volume.mkdir("a/b/c")
    await volume.mkdir("a/b/c")
    await volume.mkdir("")
    assert (hostile / "a/b/c").is_dir()
    await write(volume, "file", b"x")
    for path in ("file", "file/below"):
        with pytest.raises(PathError):
            await volume.mkdir(path)


async def test_remove_takes_a_full_directory_only_when_asked(volume: Volume, hostile: Path) -> None:
    await write(volume, "dir/sub/file", b"x")
    (hostile / "dir/link").symlink_to("../../secret")
    (hostile / "dir/up").symlink_to("..")
    with pytest.raises(PathError, match="not empty"):
        await volume.remove("dir")
    await volume.remove("dir", recursive=True)
    await volume.mkdir("empty")
    await volume.remove("empty")
    assert names(hostile) == []


@pytest.mark.parametrize("rig", DIRECT, indirect=True)
async def test_x13_a_closed_and_very_deep_directory_is_removed(volume: Volume, hostile: Path) -> None:
    require("root")  # to be an ordinary user for a while
    os.chown(hostile, 12345, 12345)
    with _as_user(12345):
        here = os.open(hostile, os.O_RDONLY)
        for level in range(1500):
            os.mkdir("d" * 20, dir_fd=here)
            below = os.open("d" * 20, os.O_RDONLY, dir_fd=here)
            os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=below))
            if level % 100 == 0:
                os.fchmod(here, 0o700)
            os.close(here)
            here = below
        os.close(here)
        for path in ("shut", "shut/in"):
            (hostile / path).mkdir()
        (hostile / "shut/in/file").write_bytes(b"x")
        (hostile / "shut/in").chmod(0o000)
        (hostile / "shut").chmod(0o500)
        await volume.remove("d" * 20, recursive=True)
        await volume.remove("shut", recursive=True)
    assert names(hostile) == []


@contextmanager
def _as_user(uid: int) -> Iterator[None]:
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


async def test_rename_moves_and_replaces(volume: Volume, hostile: Path) -> None:
    await write(volume, "a", b"a")
    await write(volume, "dir/b", b"b")
    await volume.rename("a", "dir/b")
    assert await read(volume, "dir/b") == b"a"
    await volume.rename("dir", "moved")
    assert await read(volume, "moved/b") == b"a"
    (hostile / "link").symlink_to("moved/b")
    await volume.rename("link", "moved/link")
    assert (hostile / "moved/link").readlink() == Path("moved/b")
    with pytest.raises(PathError):
        await volume.rename("moved", "moved/itself")


@pytest.mark.parametrize("rig", [*RIGS, "streamed", "each"], indirect=True)
async def test_a_copied_directory_keeps_its_mode_and_one_that_is_there_its_own(
    volume: Volume, hostile: Path, here: Path
) -> None:
    (here / "private/in").mkdir(parents=True)
    (here / "private/file").write_bytes(b"x")
    for path, mode in (("private/in", 0o711), ("private", 0o700)):
        (here / path).chmod(mode)
    await volume.push(here / "private", "new/copy")
    await volume.pull("new/copy", here / "made/back")
    for top, made in ((hostile / "new", hostile / "new/copy"), (here / "made", here / "made/back")):
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (top, made, made / "in")]
        assert modes == [0o755, 0o700, 0o711]
    for top in (hostile / "there", here / "there"):
        top.mkdir()
        top.chmod(0o750)
    await volume.push(here / "private", "there")
    await volume.pull("new/copy", here / "there")
    for top in (hostile / "there", here / "there"):
        assert stat.S_IMODE(top.stat().st_mode) == 0o750


@pytest.mark.parametrize("rig", [*RIGS, "streamed", "each"], indirect=True)
async def test_a_directory_that_all_may_write_to_is_not_so_here(volume: Volume, hostile: Path, here: Path) -> None:
    (hostile / "open/in").mkdir(parents=True)
    for path in ("open", "open/in"):
        (hostile / path).chmod(0o777)
    before = os.umask(0o027)
    try:
        await volume.pull("open", here / "back")
        await volume.push(hostile / "open", "copy")
    finally:
        os.umask(before)
    for top, mode in ((here / "back", 0o750), (hostile / "copy", 0o777)):
        assert [stat.S_IMODE(path.stat().st_mode) for path in (top, top / "in")] == [mode, mode]
