"""One suite over every volume. `hostile` is the workspace in the hands of whoever is in the sandbox."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.contract.workspaces import MIB, NAMES, SECRET, Rig, descriptors_into, names, plant, read, swapping, write
from tests.rig.require import require
from yaosb_jupyter.errors import NotFoundError, PathError, SandboxError
from yaosb_jupyter.tai.volumes.base import Volume


@pytest.fixture(autouse=True)
def nothing_outside_is_touched(directory: Path) -> Iterator[None]:
    yield
    assert sorted(path.name for path in directory.iterdir()) == ["secret", "workspace"]
    assert (directory / "secret").read_bytes() == SECRET


@pytest.mark.parametrize("name", NAMES)
async def test_a_name_is_kept_as_it_is(name: str, volume: Volume, hostile: Path) -> None:
    info = await write(volume, f"dir/{name}", b"content")
    assert (info.name, info.path) == (name, f"dir/{name}")
    assert names(hostile / "dir") == [name]
    assert await read(volume, f"dir/{name}") == b"content"
    assert [entry.name for entry in await volume.list("dir")] == [name]
    await volume.rename(f"dir/{name}", f"{name}")
    assert (await volume.stat(name)).size == 7
    await volume.remove(name)
    assert [entry.name for entry in await volume.list()] == ["dir"]


@pytest.mark.parametrize("size", [0, 1, MIB - 1, MIB, MIB + 1, 3 * MIB])
async def test_content_comes_back_whatever_its_size(size: int, volume: Volume) -> None:
    data = os.urandom(size)
    assert (await write(volume, "file", data)).size == size
    assert await read(volume, "file") == data


@pytest.mark.parametrize(("offset", "size"), [(0, 10), (5, 10), (95, 10), (100, 10), (200, 10), (30, None), (0, 0)])
async def test_a_part_of_a_file_is_read(offset: int, size: int | None, volume: Volume) -> None:
    data = bytes(range(100))
    await write(volume, "file", data)
    expected = data[offset:] if size is None else data[offset : offset + size]
    found = [piece async for piece in volume.read("file", offset=offset, size=size)]
    assert b"".join(found) == expected


async def test_paths_have_many_forms(volume: Volume) -> None:
    await write(volume, "/workspace/a/b.txt", b"x")
    for path in ("a/b.txt", "./a/b.txt", "a//b.txt", "a/../a/b.txt", "/workspace/a/b.txt", "/workspace//a/./b.txt"):
        assert await read(volume, path) == b"x"
        assert (await volume.stat(path)).path == "a/b.txt"
    for path in ("", ".", "/workspace", "/workspace/", "a/.."):
        assert [entry.path for entry in await volume.list(path)] == ["a"]
        assert (await volume.stat(path)).is_dir


OUTSIDE = ["..", "../secret", "a/../../secret", "/etc/passwd", "/", "/workspace/../secret", "/workspacesecret", "x\0y"]


@pytest.mark.parametrize("path", OUTSIDE)
async def test_x11_a_path_out_of_the_workspace_is_refused(path: str, volume: Volume) -> None:
    await write(volume, "mine", b"x")
    for call in calls(volume, path):
        with pytest.raises(PathError):
            await call()
    with pytest.raises(PathError):
        await volume.rename("mine", path)


def calls(volume: Volume, path: str) -> list[Callable[[], Any]]:
    """Everything that can be done with a path."""
    return [
        lambda: read(volume, path),
        lambda: write(volume, path, b"planted"),
        lambda: volume.stat(path),
        lambda: volume.list(path),
        lambda: volume.mkdir(path),
        lambda: volume.remove(path, recursive=True),
        lambda: volume.rename(path, "stolen"),
    ]


@pytest.mark.parametrize("target", ["..", "../", "/", "../../..", "x/../..", "/proc/self/root", "/proc/self/cwd"])
async def test_x11_a_link_out_of_the_workspace_is_refused(target: str, volume: Volume, hostile: Path) -> None:
    (hostile / "x").mkdir()
    (hostile / "link").symlink_to(target)
    for path in ("link/secret", "link/new/file"):
        for call in calls(volume, path):
            with pytest.raises(SandboxError) as caught:
                await call()
            assert isinstance(caught.value, PathError), caught.value
    with pytest.raises(PathError):
        await volume.list("link")


@pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "../new", "x/../../secret", "{outside}"])
async def test_x11_a_link_to_a_file_outside_is_refused(target: str, volume: Volume, hostile: Path) -> None:
    (hostile / "x").mkdir()
    (hostile / "link").symlink_to(target.replace("{outside}", str(hostile.parent / "secret")))
    with pytest.raises(PathError):
        await read(volume, "link")
    with pytest.raises(PathError):
        await write(volume, "link", b"planted")
    info = await volume.stat("link")
    assert info.link_target == str((hostile / "link").readlink())
    await volume.remove("link")
    assert names(hostile) == ["x"]


async def test_links_within_the_workspace_are_followed(volume: Volume, hostile: Path) -> None:
    (hostile / "real").mkdir()
    (hostile / "deep").mkdir()
    (hostile / "relative").symlink_to("real")
    (hostile / "absolute").symlink_to("/workspace/real")
    (hostile / "hosts").symlink_to(hostile / "real")
    (hostile / "deep/up").symlink_to("../real/")
    (hostile / "chain").symlink_to("deep/up")
    for number, directory in enumerate(("relative", "absolute", "hosts", "deep/up", "chain")):
        await write(volume, f"{directory}/{number}", b"x")
        assert await read(volume, f"real/{number}") == b"x"
        assert [entry.name for entry in await volume.list(directory)] == [str(n) for n in range(number + 1)]
        assert not (await volume.stat(directory)).is_dir


async def test_writing_to_a_link_writes_where_it_points(volume: Volume, hostile: Path) -> None:
    (hostile / "current").symlink_to("versions/one")
    await write(volume, "current", b"new")
    assert (hostile / "versions/one").read_bytes() == b"new"
    assert (hostile / "current").is_symlink()
    (hostile / "versions/again").symlink_to("../versions/one")
    await write(volume, "versions/again", b"newer")
    assert (hostile / "versions/one").read_bytes() == b"newer"


async def test_a_circle_of_links_ends(volume: Volume, hostile: Path) -> None:
    (hostile / "a").symlink_to("b")
    (hostile / "b").symlink_to("a")
    for call in (lambda: read(volume, "a"), lambda: write(volume, "a", b"x"), lambda: volume.list("a")):
        with pytest.raises(PathError):
            await call()


@pytest.mark.parametrize("kind", ["FIFO", "socket", "device"])
async def test_x11_what_is_no_file_is_refused_at_once(kind: str, volume: Volume, hostile: Path) -> None:
    plant(kind, hostile / "odd")
    (hostile / "link").symlink_to("odd")
    async with asyncio.timeout(5):
        for path in ("odd", "link"):
            with pytest.raises(PathError):
                await read(volume, path)
            with pytest.raises(PathError):
                await write(volume, path, b"x")
            with pytest.raises(PathError):
                await volume.list(path)
        assert not (await volume.stat("odd")).is_dir
        await volume.rename("odd", "renamed")
        await volume.remove("renamed")
    assert [entry.name for entry in await volume.list()] == ["link"]


async def test_x10_a_file_is_whole_from_the_moment_it_is_seen(volume: Volume, hostile: Path) -> None:
    await write(volume, "file", b"old")
    seen: list[bytes] = []

    async def slowly() -> AsyncIterator[bytes]:
        for piece in (b"new ", b"and ", b"whole"):
            yield piece
            seen.append(await asyncio.to_thread((hostile / "file").read_bytes))

    await volume.write("file", slowly())
    assert seen == [b"old"] * 3
    assert (hostile / "file").read_bytes() == b"new and whole"


async def test_x10_a_failed_write_leaves_the_old_file_and_nothing_else(volume: Volume, hostile: Path) -> None:
    await write(volume, "file", b"old")

    async def breaking() -> AsyncIterator[bytes]:
        yield b"x" * MIB
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        await volume.write("file", breaking())
    assert names(hostile) == ["file"]
    assert await read(volume, "file") == b"old"


async def test_x10_a_cancelled_write_leaves_the_old_file_and_nothing_else(
    rig: Rig, volume: Volume, hostile: Path
) -> None:
    await write(volume, "file", b"old")

    async def long() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b"x" * MIB

    for after in (0.0, 0.001, 0.003):
        writing = asyncio.ensure_future(volume.write("file", long()))
        await asyncio.sleep(after)
        writing.cancel()
        await asyncio.wait([writing])
        assert writing.cancelled()
        assert names(hostile) == ["file"]
    assert await read(volume, "file") == b"old"
    assert not descriptors_into(hostile, rig.pids)


async def test_a_cancelled_read_lets_go(rig: Rig, volume: Volume, hostile: Path) -> None:
    await write(volume, "file", b"x" * (4 * MIB))
    for after in (0.0, 0.0005, 0.002):
        reading = asyncio.ensure_future(read(volume, "file"))
        await asyncio.sleep(after)
        reading.cancel()
        await asyncio.wait([reading])
    left = volume.read("file")
    await anext(left)
    await left.aclose()  # type: ignore[attr-defined]
    assert not descriptors_into(hostile, rig.pids)


async def test_x10_a_big_file_goes_through_in_pieces(rig: Rig, volume: Volume) -> None:
    sent, received, biggest = hashlib.sha256(), hashlib.sha256(), 0

    async def source() -> AsyncIterator[bytes]:
        for number in range(64):
            piece = number.to_bytes(4, "big") * (MIB // 4)
            sent.update(piece)
            yield piece

    before = _peaks(rig.pids)
    assert (await volume.write("big", source())).size == 64 * MIB
    async for piece in volume.read("big"):
        biggest = max(biggest, len(piece))
        received.update(piece)
    assert received.digest() == sent.digest()
    assert biggest <= MIB
    assert all(after - peak < 24 * MIB for peak, after in zip(before, _peaks(rig.pids), strict=True))


def _peaks(pids: tuple[int, ...]) -> list[int]:
    return [_peak(pid) for pid in pids]


def _peak(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel tells no peak")


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


@pytest.mark.parametrize("path", ["", ".", "/workspace"])
async def test_the_workspace_itself_stays(path: str, volume: Volume, hostile: Path) -> None:
    await write(volume, "file", b"x")
    for call in (
        lambda: volume.remove(path, recursive=True),
        lambda: volume.rename(path, "elsewhere"),
        lambda: volume.rename("file", path),
        lambda: write(volume, path, b"x"),
        lambda: read(volume, path),
    ):
        with pytest.raises(PathError):
            await call()
    assert names(hostile) == ["file"]


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


@pytest.mark.parametrize("path", ["nothing", "nothing/below", "dir/nothing"])
async def test_a_missing_file_is_not_found(path: str, volume: Volume, hostile: Path) -> None:
    (hostile / "dir").mkdir()
    for call in (
        lambda: read(volume, path),
        lambda: volume.stat(path),
        lambda: volume.list(path),
        lambda: volume.remove(path),
        lambda: volume.rename(path, "other"),
    ):
        with pytest.raises(NotFoundError) as caught:
            await call()
        assert caught.value.sandbox == "box"
    await write(volume, "file", b"x")
    with pytest.raises(NotFoundError):
        await volume.rename("file", "missing/directory/file")


async def test_a_directory_is_not_a_file_and_a_file_no_directory(volume: Volume) -> None:
    await write(volume, "dir/file", b"x")
    for call in (
        lambda: read(volume, "dir"),
        lambda: write(volume, "dir", b"x"),
        lambda: read(volume, "dir/file/below"),
        lambda: write(volume, "dir/file/below", b"x"),
        lambda: volume.list("dir/file"),
        lambda: volume.rename("dir/file", "dir"),
    ):
        with pytest.raises(PathError):
            await call()


@pytest.mark.parametrize("path", ["x" * 256, "a/" * 300 + "b", "x" * 5000])
async def test_a_path_that_is_too_long_is_refused(path: str, volume: Volume) -> None:
    for call in (lambda: read(volume, path), lambda: write(volume, path, b"x"), lambda: volume.mkdir(path)):
        with pytest.raises(PathError):
            await call()


async def test_writers_at_once_leave_one_whole_file(volume: Volume, hostile: Path) -> None:
    contents = [bytes([number]) * (2 * MIB) for number in range(8)]
    await asyncio.gather(*(write(volume, "deep/er/file", data) for data in contents))
    assert await read(volume, "deep/er/file") in contents
    assert names(hostile / "deep/er") == ["file"]


async def test_a_file_that_shrinks_while_it_is_read_ends(volume: Volume, hostile: Path) -> None:
    await write(volume, "file", b"x" * (8 * MIB))
    total = 0
    async for piece in volume.read("file"):
        total += len(piece)
        os.truncate(hostile / "file", MIB)
    assert MIB <= total < 4 * MIB, "more than was under way"


async def test_a_file_that_grows_for_ever_is_read_as_it_was(volume: Volume, hostile: Path) -> None:
    await write(volume, "file", b"x" * (2 * MIB))
    total = 0
    async for piece in volume.read("file"):
        total += len(piece)
        with (hostile / "file").open("ab") as file:
            file.write(b"y" * (2 * MIB))
    assert total == 2 * MIB


async def test_x11_a_directory_swapped_meanwhile_leads_nowhere(
    volume: Volume, hostile: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "file").write_bytes(SECRET)
    (outside / "sub").mkdir()
    (hostile / "dir/sub").mkdir(parents=True)
    (hostile / "dir/file").write_bytes(b"inside")
    refused = done = 0
    with swapping(hostile / "dir", outside):
        for number in range(400):
            for call in (
                lambda: read(volume, "dir/file"),
                lambda: write(volume, "dir/file", b"inside"),
                lambda number=number: write(volume, f"dir/sub/{number}", b"inside"),
                lambda number=number: volume.mkdir(f"dir/made/{number}"),
                lambda number=number: volume.rename("dir/file", "dir/file"),
                lambda number=number: volume.remove(f"dir/sub/{number}"),
                lambda: volume.list("dir"),
            ):
                try:
                    found = await call()
                except (PathError, NotFoundError):
                    refused += 1
                else:
                    done += 1
                    assert found != SECRET
    assert done, "the attacker won every race: nothing was tried"
    assert refused, "the attacker lost every race: nothing was tried"
    assert names(outside) == ["file", "sub"]
    assert names(outside / "sub") == []
    assert (outside / "file").read_bytes() == SECRET


async def test_x11_a_tree_swapped_while_it_is_removed_spares_the_outside(
    volume: Volume, hostile: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    kept = [outside / f"kept-{number}" for number in range(20)]
    for path in kept:
        path.write_bytes(SECRET)
    for number in range(60):
        victim = hostile / "tree/victim"
        victim.mkdir(parents=True, exist_ok=True)
        for name in range(10):
            (victim / str(name)).write_bytes(b"x")
        stop = threading.Event()

        def swap(victim: Path = victim, stop: threading.Event = stop) -> None:
            while not stop.is_set():
                with suppress(OSError):
                    victim.rename(victim.with_name("aside"))
                    victim.symlink_to(outside)
                    victim.unlink()
                    victim.with_name("aside").rename(victim)

        attacker = threading.Thread(target=swap)
        attacker.start()
        try:
            with suppress(SandboxError):
                await volume.remove("tree", recursive=True)
        finally:
            stop.set()
            attacker.join()
        assert all(path.exists() for path in kept), f"round {number}"
