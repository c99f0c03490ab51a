"""Copies of trees, into every kind of volume and out of it."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.contract.box import pieces
from tests.contract.conftest import DIRECT
from tests.contract.workspaces import (
    MIB,
    NAMES,
    SECRET,
    Rig,
    descriptors_into,
    make_tree,
    names,
    plant,
    swapping,
    tree_of,
)
from tests.rig.require import require
from yaosb_jupyter.errors import NotFoundError, PathError, SandboxError, UnavailableError
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.types import CopyProgress

pytestmark = pytest.mark.parametrize("rig", [*DIRECT, "daemon", "streamed", "each"], indirect=True)


async def test_a_tree_goes_in_and_comes_back_as_it_is(volume: Volume, hostile: Path, here: Path) -> None:
    made = make_tree(here / "tree")
    size = sum(len(content) for _, content in made.values() if content is not None)
    steps: list[CopyProgress] = []
    pushed = await volume.push(here / "tree", "a/copy", steps.append)
    assert tree_of(hostile / "a/copy") == made
    assert (pushed.target, pushed.files, pushed.size, pushed.skipped) == ("a/copy", len(NAMES) + 4, size, ())
    pulled = await volume.pull("a/copy", here / "b/back", steps.append)
    assert tree_of(here / "b/back") == made
    assert (pulled.target, pulled.files, pulled.size) == (str(here / "b/back"), len(NAMES) + 4, size)
    both = [step.done for step in steps]
    half = both.index(size) + 1
    assert both[:half] == sorted(both[:half])
    assert (steps[-1].done, steps[-1].total) == (size, size)


async def test_a_thousand_small_files(volume: Volume, hostile: Path, here: Path) -> None:
    (here / "tree").mkdir()
    for number in range(1000):
        (here / f"tree/{number:04}").write_bytes(os.urandom(1024))
    assert (await volume.push(here / "tree", "copy")).files == 1000
    assert (await volume.pull("copy", here / "back")).files == 1000
    assert tree_of(here / "back") == tree_of(here / "tree")


@pytest.mark.parametrize("path", ["", ".", "/workspace"])
async def test_the_whole_workspace(path: str, volume: Volume, hostile: Path, here: Path) -> None:
    (here / "tree").mkdir()
    (here / "tree/new").write_bytes(b"new")
    (hostile / "old").write_bytes(b"old")
    await volume.push(here / "tree", path)
    await volume.pull(path, here / "back")
    assert names(here / "back") == ["new", "old"]
    (here / "file").write_bytes(b"x")
    with pytest.raises(PathError):
        await volume.push(here / "file", path)


async def test_a_file_alone(volume: Volume, hostile: Path, here: Path) -> None:
    (here / "file").write_bytes(b"content")
    (here / "file").chmod(0o750)
    assert (await volume.push(here / "file", "new/place")).files == 1
    assert (hostile / "new/place").read_bytes() == b"content"
    assert stat.S_IMODE((hostile / "new/place").stat().st_mode) == 0o750
    assert (await volume.pull("new/place", here / "also/new")).size == 7
    assert (here / "also/new").read_bytes() == b"content"


async def test_what_is_there_is_filled_and_replaced(volume: Volume, hostile: Path, here: Path) -> None:
    (here / "tree/sub").mkdir(parents=True)
    (here / "tree/sub/file").write_bytes(b"new")
    for top in (hostile / "copy", here / "back"):
        (top / "sub").mkdir(parents=True)
        (top / "sub").chmod(0o711)
        (top / "sub/file").write_bytes(b"old")
        (top / "sub/kept").write_bytes(b"kept")
    await volume.push(here / "tree", "copy")
    await volume.pull("copy", here / "back")
    for top in (hostile / "copy", here / "back"):
        assert (top / "sub/file").read_bytes() == b"new"
        assert (top / "sub/kept").read_bytes() == b"kept"
        assert stat.S_IMODE((top / "sub").stat().st_mode) == 0o711


async def test_a_file_is_no_directory_and_a_directory_no_file(volume: Volume, hostile: Path, here: Path) -> None:
    (here / "tree/name").mkdir(parents=True)
    (here / "file").write_bytes(b"x")
    (hostile / "copy").mkdir()
    (hostile / "copy/name").write_bytes(b"old")
    for source, target in (("tree", "copy"), ("tree", "copy/name"), ("file", "copy"), ("file", "copy/name/below")):
        with pytest.raises(PathError):
            await volume.push(here / source, target)
    for source, target in (("copy", "file"), ("copy", "tree"), ("copy/name", "tree")):
        with pytest.raises(PathError):
            await volume.pull(source, here / target)
    assert (hostile / "copy/name").read_bytes() == b"old"
    assert (here / "file").read_bytes() == b"x"
    assert (here / "tree/name").is_dir()


async def test_x11_links_and_special_files_are_left_out_and_told(volume: Volume, hostile: Path, here: Path) -> None:
    for top, secret in ((hostile / "tree", hostile.parent / "secret"), (here / "tree", here / "tree/plain")):
        (top / "sub").mkdir(parents=True)
        (top / "plain").write_text("p")
        (top / "sub/link").symlink_to(secret)
        (top / "loop").symlink_to(top)
        plant("FIFO", top / "fifo")
    async with asyncio.timeout(20):
        pulled = await volume.pull("tree", here / "back")
        pushed = await volume.push(here / "tree", "copy")
    for top, copied in ((here / "back", pulled), (hostile / "copy", pushed)):
        assert copied.skipped == ("fifo", "loop", "sub/link")
        assert names(top) == ["plain", "sub"]
        assert names(top / "sub") == []


@pytest.mark.parametrize("kind", ["FIFO", "socket", "device"])
async def test_x11_what_is_no_file_is_refused_at_once(kind: str, volume: Volume, hostile: Path, here: Path) -> None:
    plant(kind, hostile / "odd")
    plant(kind, here / "odd")
    async with asyncio.timeout(10):
        with pytest.raises(PathError):
            await volume.pull("odd", here / "back")
        with pytest.raises(PathError):
            await volume.push(here / "odd", "copy")
        (here / "file").write_bytes(b"x")
        with pytest.raises(PathError):
            await volume.push(here / "file", "odd")
    assert names(hostile) == ["odd"]
    assert names(here) == ["file", "odd"]


@pytest.mark.parametrize("target", ["..", "../secret", "/", "x/../..", "{outside}"])
async def test_x11_a_link_out_of_the_workspace_is_refused(
    target: str, volume: Volume, hostile: Path, here: Path
) -> None:
    (hostile / "x").mkdir()
    (hostile / "copy").mkdir()
    (hostile / "link").symlink_to(target.replace("{outside}", str(here)))
    (hostile / "copy/sub").symlink_to(here)
    (here / "tree/sub").mkdir(parents=True)
    (here / "tree/sub/file").write_bytes(b"planted")
    for path in ("link", "link/secret", "link/new", "../here"):
        with pytest.raises((PathError, NotFoundError)):
            await volume.pull(path, here / "back")
        with pytest.raises(PathError):
            await volume.push(here / "tree", path)
    with pytest.raises(PathError):
        await volume.push(here / "tree", "copy")
    assert names(here) == ["tree"]


async def test_links_within_the_workspace_are_followed_to_the_top(volume: Volume, hostile: Path, here: Path) -> None:
    (hostile / "real").mkdir()
    (hostile / "link").symlink_to("/workspace/real")
    (here / "tree").mkdir()
    (here / "tree/file").write_bytes(b"x")
    await volume.push(here / "tree", "link/below")
    await volume.push(here / "tree", "link")
    assert names(hostile / "real") == ["below", "file"]
    assert (hostile / "link").is_symlink()


async def test_what_is_missing_is_not_found(volume: Volume, hostile: Path, here: Path) -> None:
    with pytest.raises(NotFoundError):
        await volume.push(here / "nothing", "copy")
    for path in ("nothing", "nothing/below"):
        with pytest.raises(NotFoundError) as caught:
            await volume.pull(path, here / "back")
        assert caught.value.sandbox == "box"
    assert names(hostile) == names(here) == []


async def test_what_is_made_belongs_to_the_workspaces_owner(volume: Volume, hostile: Path, here: Path) -> None:
    require("root")
    os.chown(hostile, 12345, 54321)
    (here / "tree/sub").mkdir(parents=True)
    (here / "tree/sub/file").write_bytes(b"x")
    await volume.push(here / "tree", "new/copy")
    for path in ("new", "new/copy", "new/copy/sub", "new/copy/sub/file"):
        status = (hostile / path).stat()
        assert (status.st_uid, status.st_gid) == (12345, 54321)


async def test_a_mode_gives_no_rights_of_others(volume: Volume, hostile: Path, here: Path) -> None:
    (hostile / "tree").mkdir()
    (hostile / "tree/file").write_bytes(b"x")
    (hostile / "tree/file").chmod(0o6755)
    (hostile / "tree").chmod(0o1777)
    await volume.pull("tree", here / "back")
    assert stat.S_IMODE((here / "back/file").stat().st_mode) == 0o755


async def test_a_tree_that_is_too_deep_is_refused(rig: Rig, volume: Volume, hostile: Path, here: Path) -> None:
    for top in (hostile / "tree", here / "tree"):
        top.mkdir()
        fd = os.open(top, os.O_RDONLY)
        for _ in range(300):
            os.mkdir("d", dir_fd=fd)
            below = os.open("d", os.O_RDONLY, dir_fd=fd)
            os.close(fd)
            fd = below
        os.close(fd)
    with pytest.raises(PathError):
        await volume.push(here / "tree", "copy")
    with pytest.raises(PathError):
        await volume.pull("tree", here / "back")
    assert not descriptors_into(hostile, rig.pids)


async def test_x10_a_cancelled_copy_leaves_whole_files_only(
    rig: Rig, volume: Volume, hostile: Path, here: Path
) -> None:
    (here / "tree").mkdir()
    for number in range(20):
        (here / f"tree/{number:02}").write_bytes(b"%02d" % number * (2 * MIB))
    await volume.push(here / "tree", "source")
    for after in (0.0, 0.01, 0.05, 0.1):
        for copy, top in (
            (volume.push(here / "tree", "in"), hostile / "in"),
            (volume.pull("source", here / "out"), here / "out"),
        ):
            copying = asyncio.ensure_future(copy)
            await asyncio.sleep(after)
            copying.cancel()
            await asyncio.wait([copying])
            for path in top.iterdir() if top.exists() else ():
                assert path.stat().st_size == 4 * MIB, path
                assert path.name.isdigit()
    for directory in (hostile, here):
        assert not descriptors_into(directory, rig.pids)


async def test_x10_a_stream_that_is_no_tree_leaves_nothing(volume: Volume, hostile: Path, here: Path) -> None:
    with pytest.raises(PathError, match="no tree of files"):
        await volume.unpack("copy", pieces(b"what is this" * 1000))
    with pytest.raises(PathError, match="no tree of files"):
        await volume.unpack("copy", pieces(b""))
    assert names(hostile) == []


async def test_x10_a_stream_that_breaks_leaves_whole_files_only(volume: Volume, hostile: Path, here: Path) -> None:
    (here / "tree").mkdir()
    for number in range(4):
        (here / f"tree/{number}").write_bytes(b"x" * MIB)
    whole = b"".join([piece async for piece in volume.pack(await _pushed(volume, here / "tree"))])

    async def breaking() -> AsyncIterator[bytes]:
        yield whole[: 2 * MIB + MIB // 2]
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        await volume.unpack("copy", breaking())
    with pytest.raises(PathError):
        await volume.unpack("cut", pieces(whole[:-20]))
    for top in (hostile / "copy", hostile / "cut"):
        assert {path.stat().st_size for path in top.iterdir()} == {MIB}


async def _pushed(volume: Volume, source: Path) -> str:
    await volume.push(source, "pushed")
    return "pushed"


async def test_errors_of_a_progress_reach_the_caller(volume: Volume, hostile: Path, here: Path) -> None:
    (here / "file").write_bytes(b"x" * MIB)
    (hostile / "file").write_bytes(b"x" * MIB)

    def refuse(step: CopyProgress) -> None:
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        await volume.push(here / "file", "new", refuse)
    with pytest.raises(RuntimeError, match="no more"):
        await volume.pull("file", here / "new", refuse)


async def test_x11_a_directory_swapped_meanwhile_leads_nowhere(volume: Volume, hostile: Path, here: Path) -> None:
    outside = here / "outside"
    (outside / "sub").mkdir(parents=True)
    (outside / "sub/file").write_bytes(SECRET)
    (hostile / "top/dir/sub").mkdir(parents=True)
    (hostile / "top/dir/sub/file").write_bytes(b"inside")
    (here / "tree/dir/sub").mkdir(parents=True)
    (here / "tree/dir/sub/file").write_bytes(b"inside")
    refused = done = 0
    with swapping(hostile / "top/dir", outside):
        for number in range(100):
            back = here / f"back-{number}"
            for call in (
                lambda back=back: volume.pull("top/dir", back),
                lambda back=back: volume.pull("top", back),
                lambda: volume.push(here / "tree/dir", "top/dir"),
                lambda: volume.push(here / "tree", "top"),
            ):
                try:
                    await call()
                except (PathError, NotFoundError):
                    refused += 1
                else:
                    done += 1
    assert done, "the attacker won every race: nothing was tried"
    assert refused, "the attacker lost every race: nothing was tried"
    assert (outside / "sub/file").read_bytes() == SECRET
    assert names(outside / "sub") == ["file"]
    assert not [path for path in here.glob("back-*/**/file") if path.read_bytes() == SECRET]


async def test_a_tree_that_is_being_removed_is_copied_as_far_as_it_is_there(
    volume: Volume, hostile: Path, here: Path
) -> None:
    for number in range(300):
        (hostile / f"tree/{number}").mkdir(parents=True)
        (hostile / f"tree/{number}/file").write_bytes(b"x")
    removing = asyncio.create_task(volume.remove("tree", recursive=True))
    with suppress(NotFoundError):
        await volume.pull("tree", here / "back")
    await removing


async def test_a_file_that_cannot_be_read_is_named(volume: Volume, hostile: Path, here: Path) -> None:
    require("root")  # to be an ordinary user for a while
    (here / "tree/sub").mkdir(parents=True)
    (here / "tree/sub/shut").write_bytes(b"x")
    (here / "tree/sub/shut").chmod(0)
    hostile.chmod(0o777)
    await volume.list()  # whoever connects has to be the daemon's user
    os.seteuid(12345)
    try:
        with pytest.raises((PathError, UnavailableError, SandboxError), match="sub/shut"):
            await volume.push(here / "tree", "copy")
    finally:
        os.seteuid(0)
