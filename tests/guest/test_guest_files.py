"""The guest's operations on files, beside its others."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pytest

from tests.contract.box import pieces
from tests.contract.workspaces import descriptors_into, names, read
from tests.guest.rig import Guest, guest, other_pythons
from tests.rig.require import require
from yaosb_jupyter.choices import FileChange
from yaosb_jupyter.guest import files, later
from yaosb_jupyter.link.connection import RemoteError
from yaosb_jupyter.tai.volumes.link import LinkVolume
from yaosb_jupyter.types import FileEvent

MIB = 2**20


@pytest.fixture
async def running(tmp_path: Path, workspace: Path) -> AsyncIterator[Guest]:
    (tmp_path / "run").mkdir()
    async with guest(tmp_path / "run", workdir=str(workspace)) as found:
        await found.link.connected(20)
        yield found


@pytest.fixture
def volume(running: Guest) -> LinkVolume:
    return volume_of(running)


def volume_of(running: Guest) -> LinkVolume:
    return LinkVolume(lambda: running.link.connected(20), sandbox="box")


def test_what_is_loaded_later_is_all_there_is() -> None:
    assert {f"files.{name}" for name in later.NAMES} == set(files.OPERATIONS)


async def test_x9_files_and_trees_leave_room_for_commands(
    running: Guest, volume: LinkVolume, workspace: Path, tmp_path: Path
) -> None:
    """1 GiB read, a tree removed and a tree unpacked at once; commands beside them take their usual time."""
    with (workspace / "big").open("wb") as file:
        file.truncate(1 << 30)
    for number in range(50):
        (workspace / f"full/{number}").mkdir(parents=True)
        for name in range(100):
            (workspace / f"full/{number}/{name}").touch()
    (tmp_path / "tree").mkdir()
    for number in range(3000):
        (tmp_path / f"tree/{number}").touch()

    async def count() -> int:
        return sum([len(piece) async for piece in volume.read("big")])

    reading = asyncio.ensure_future(count())
    others = [
        asyncio.ensure_future(volume.remove("full", recursive=True)),
        asyncio.ensure_future(volume.push(tmp_path / "tree", "copy")),
    ]
    took = []
    while not reading.done():
        begun = time.monotonic()
        await running.run("true")
        took.append(time.monotonic() - begun)
    assert await reading == 1 << 30
    await asyncio.gather(*others)
    assert len(took) > 5
    assert sorted(took)[len(took) // 2] < 0.3, took
    assert not (workspace / "full").exists()
    assert len(names(workspace / "copy")) == 3000


async def test_x9_a_slow_reader_of_a_file_stops_its_own_stream_only(
    running: Guest, volume: LinkVolume, workspace: Path
) -> None:
    with (workspace / "big").open("wb") as file:
        file.truncate(1 << 30)
    (workspace / "small").write_bytes(b"small")
    async with aclosing(cast(Any, volume.read("big"))) as slow:
        await anext(slow)
        async with asyncio.timeout(10):
            assert await read(volume, "small") == b"small"
            assert (await running.run("echo", "out"))[1] == b"out\n"
        resident = int(Path(f"/proc/{running.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
        assert resident < 32 * MIB


async def test_x10_a_write_whose_link_breaks_leaves_the_old_file_and_nothing_else(
    running: Guest, volume: LinkVolume, workspace: Path
) -> None:
    (workspace / "file").write_bytes(b"old")
    halfway = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * MIB
            if len(await asyncio.to_thread(names, workspace)) == 2:
                halfway.set()

    writing = asyncio.ensure_future(volume.write("file", endless()))
    async with asyncio.timeout(20):
        await halfway.wait()
        await running.relink()
        with pytest.raises(Exception, match="link"):
            await writing
        await volume.stat("file")  # through the new link: the guest has let go of the old
    assert names(workspace) == ["file"]
    assert (workspace / "file").read_bytes() == b"old"
    assert not descriptors_into(workspace, (running.process.pid,))


@pytest.mark.parametrize("name", ["..", ".", "a/b", "/etc", "x\0y", "x" * 300])
async def test_x11_a_name_that_is_none_is_refused_by_the_guest_too(name: str, running: Guest) -> None:
    connection = await running.link.connected(20)
    for operation in ("files.read", "files.stat", "files.list", "files.mkdir", "files.remove", "files.pack"):
        with pytest.raises(RemoteError):
            await connection.call(operation, {"names": ["dir", name]})


@pytest.mark.parametrize("request_", [{}, {"names": 7}, {"names": [7]}, {"names": ["x"], "offset": "far"}])
async def test_a_bad_request_is_answered(request_: dict[str, Any], running: Guest) -> None:
    connection = await running.link.connected(20)
    with pytest.raises(RemoteError) as caught:
        await connection.call("files.read", request_)
    assert caught.value.code == "InvalidOptionError"


async def test_x10_a_cancelled_removal_of_a_big_tree_ends(running: Guest, volume: LinkVolume, workspace: Path) -> None:
    for number in range(3000):
        (workspace / f"full/{number}").mkdir(parents=True)
    removing = asyncio.ensure_future(volume.remove("full", recursive=True))
    while len(names(workspace / "full")) == 3000:
        await asyncio.wait([removing], timeout=0.001)
    removing.cancel()
    await asyncio.wait([removing])
    left = names(workspace / "full")
    assert not descriptors_into(workspace, (running.process.pid,))
    assert names(workspace / "full") == left


async def _next(events: AsyncIterator[FileEvent], count: int) -> set[tuple[str, str]]:
    async with asyncio.timeout(20):
        found = [await anext(events) for _ in range(count)]
    return {(event.change.value, event.path) for event in found}


async def test_changes_of_a_directory_are_told(volume: LinkVolume, workspace: Path) -> None:
    (workspace / "dir").mkdir()
    (workspace / "dir/old").write_bytes(b"old")
    async with aclosing(cast(Any, volume.watch("dir"))) as events:
        first = asyncio.ensure_future(_next(events, 1))
        while not first.done():  # being watched takes a moment: something changes until it is seen
            (workspace / "dir/old").write_bytes(os.urandom(10))
            await asyncio.wait([first], timeout=0.05)
        assert first.result() == {(FileChange.CHANGED, "dir/old")}
        await volume.write("dir/new", pieces(b"x"))
        await volume.remove("dir/old")
        seen: set[tuple[str, str]] = set()
        while not {("created", "dir/new"), ("removed", "dir/old")} <= seen:
            seen |= await _next(events, 1)
        await volume.remove("dir", recursive=True)
        async with asyncio.timeout(20):
            assert ("removed", "dir/new") in {(event.change.value, event.path) async for event in events}


async def test_changes_are_looked_for_where_nothing_tells_them(tmp_path: Path, workspace: Path) -> None:
    (tmp_path / "run").mkdir()
    async with guest(tmp_path / "run", workdir=str(workspace)) as running:
        # As many as a user may have, held by somebody else.
        hog = await running.exec("python3", "-c", HOG)
        assert (await hog.receive()) is not None
        volume = volume_of(running)
        async with aclosing(cast(Any, volume.watch())) as events:
            first = asyncio.ensure_future(_next(events, 1))
            number = 0
            while not first.done():
                number += 1
                (workspace / "file").write_bytes(b"x" * number)
                await asyncio.wait([first], timeout=0.3)
            assert {path for _, path in first.result()} == {"file"}
        await hog.cancel(1)


HOG = """
import ctypes, time
libc = ctypes.CDLL(None)
while libc.inotify_init1(0) >= 0: pass
print("none left", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("which", [0, -1], ids=["oldest", "newest"])
async def test_it_serves_files_on_the_oldest_and_the_newest_python(which: int, tmp_path: Path, workspace: Path) -> None:
    require("other-pythons")
    (tmp_path / "run").mkdir()
    (tmp_path / "tree/sub").mkdir(parents=True)
    (tmp_path / "tree/sub/file").write_bytes(b"content")
    (tmp_path / "tree/link").symlink_to("sub")
    async with guest(tmp_path / "run", other_pythons()[which], workdir=str(workspace)) as running:
        volume = volume_of(running)
        assert (await volume.push(tmp_path / "tree", "copy")).files == 1
        (workspace / "copy/link").symlink_to("sub")
        pulled = await volume.pull("copy", tmp_path / "back")
        assert (pulled.files, pulled.skipped) == (1, ("link",))
        assert (tmp_path / "back/sub/file").read_bytes() == b"content"
        assert [entry.name for entry in await volume.list("copy/link")] == ["file"]
        await volume.write("new/file", pieces(b"x" * (3 * MIB)))
        assert len(await read(volume, "new/file")) == 3 * MIB
        await volume.rename("new/file", "moved")
        await volume.mkdir("made/below")
        assert (await volume.stat("made")).is_dir
        async with aclosing(cast(Any, volume.watch("made"))) as events:
            first = asyncio.ensure_future(_next(events, 1))
            number = 0
            while not first.done():
                number += 1
                await volume.mkdir(f"made/{number}")
                await asyncio.wait([first], timeout=0.05)
        await volume.remove("copy", recursive=True)
        assert names(workspace) == ["made", "moved", "new"]
