"""Copies of trees that are there already, wholly or in part: what is unchanged is not sent."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.contract.conftest import DIRECT, RIGS
from tests.contract.workspaces import Rig, make_tree, tree_of
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.types import Copied

everywhere = pytest.mark.parametrize("rig", [*RIGS, "streamed", "each"], indirect=True)
but_by_an_engine = pytest.mark.parametrize("rig", [*DIRECT, "daemon", "streamed", "each"], indirect=True)
"""File by file an engine is slow, and it takes names in UTF-8 only."""

Copy = Callable[..., Awaitable[Copied]]


@pytest.fixture(params=["push", "pull"])
def ends(request: pytest.FixtureRequest, volume: Volume, hostile: Path, here: Path) -> tuple[Path, Path, Copy]:
    """What is copied, what it becomes, and how."""
    if request.param == "push":
        return here / "tree", hostile / "copy", lambda **options: volume.push(here / "tree", "copy", **options)
    return hostile / "tree", here / "copy", lambda **options: volume.pull("tree", here / "copy", **options)


def small_files(top: Path, count: int) -> None:
    top.mkdir()
    for number in range(count):
        (top / f"{number:04}").write_bytes(b"%04d" % number * 256)


def identities(top: Path) -> dict[Path, tuple[int, int]]:
    """Another where a file was replaced, or written to."""
    return {path: (path.stat().st_ino, path.stat().st_ctime_ns) for path in top.rglob("*")}


@but_by_an_engine
async def test_what_is_there_is_not_sent_again(ends: tuple[Path, Path, Copy]) -> None:
    source, target, copy = ends
    made = make_tree(source)
    first = await copy()
    files = first.files
    assert first.unchanged == 0
    before = identities(target)
    again = await copy()
    assert (again.files, again.size, again.unchanged) == (0, 0, files)
    assert identities(target) == before
    assert tree_of(target) == made


@pytest.mark.parametrize("rig", [*DIRECT, "daemon", "streamed"], indirect=True)
async def test_a_thousand_unchanged_files_cost_next_to_nothing(volume: Volume, hostile: Path, here: Path) -> None:
    small_files(here / "tree", 1000)
    sent: list[bytes] = []
    unpack = volume.unpack
    volume.unpack = lambda target, records: unpack(target, noted(records, sent))  # type: ignore[method-assign]

    async def timed(target: str) -> tuple[float, Copied]:
        sent.clear()
        began = time.perf_counter()
        copied = await volume.push(here / "tree", target)
        return time.perf_counter() - began, copied

    quicker: list[float] = []
    for number in range(3):
        first, copied = await timed(f"copy-{number}")
        assert copied.files == 1000
        again, copied = await timed(f"copy-{number}")
        assert (copied.files, copied.size, copied.unchanged) == (0, 0, 1000)
        assert sum(map(len, sent)) < 100
        quicker.append(first / again)
    assert max(quicker) > 3
    (here / "tree/0500").write_bytes(b"changed")
    _, copied = await timed("copy-0")
    assert (copied.files, copied.size, copied.unchanged) == (1, 7, 999)
    assert (hostile / "copy-0/0500").read_bytes() == b"changed"


@everywhere
async def test_only_what_changed_is_sent(ends: tuple[Path, Path, Copy]) -> None:
    source, target, copy = ends
    small_files(source, 20)
    await copy()
    (source / "0003").write_bytes(b"changed")
    (source / "0004").chmod(0o600)
    (source / "new").mkdir()
    (source / "new/file").write_bytes(b"new")
    (source / "0005").unlink()
    (target / "0006").unlink()
    (target / "0007").write_bytes(b"changed there")
    again = await copy()
    assert (again.files, again.unchanged) == (5, 15)
    assert again.size == 7 + 1024 + 3 + 1024 + 1024
    assert {**tree_of(source), "0005": tree_of(target)["0005"]} == tree_of(target)


@everywhere
async def test_times_are_kept(rig: Rig, ends: tuple[Path, Path, Copy]) -> None:
    source, target, copy = ends
    source.mkdir()
    (source / "file").write_bytes(b"x")
    (source / "ancient").write_bytes(b"x")
    os.utime(source / "file", ns=(0, 1_234_567_890_123_456_000))
    os.utime(source / "ancient", ns=(0, -86_400_000_000_000))
    await copy()
    assert (target / "file").stat().st_mtime_ns == 1_234_567_890_123_456_000
    if rig.host_paths:  # an engine knows no time before 1970
        assert (target / "ancient").stat().st_mtime_ns == -86_400_000_000_000


@everywhere
async def test_a_file_alone(ends: tuple[Path, Path, Copy]) -> None:
    source, target, copy = ends
    source.write_bytes(b"content")
    assert (await copy()).files == 1
    inode = target.stat().st_ino
    again = await copy()
    assert (again.files, again.unchanged, again.skipped) == (0, 1, ())
    assert target.stat().st_ino == inode
    source.write_bytes(b"other")
    assert (await copy()).files == 1
    assert target.read_bytes() == b"other"


@everywhere
async def test_with_checksum_contents_count_and_times_do_not(ends: tuple[Path, Path, Copy]) -> None:
    source, target, copy = ends
    small_files(source, 3)
    (source / "empty").write_bytes(b"")
    await copy()
    kept = (target / "0001").stat()
    (target / "0001").write_bytes(b"forged here " * 85 + b"1234")
    os.utime(target / "0001", ns=(kept.st_atime_ns, kept.st_mtime_ns))
    os.utime(source / "0002")
    again = await copy(checksum=True)
    assert (again.files, again.unchanged) == (1, 3)
    assert tree_of(target) == tree_of(source)


@but_by_an_engine
async def test_files_that_may_not_be_read_are_sent_for(volume: Volume, hostile: Path, here: Path) -> None:
    """What is at the target and cannot be compared is replaced."""
    small_files(here / "tree", 2)
    await volume.push(here / "tree", "copy")
    (hostile / "copy/0000").chmod(0)
    assert (await volume.push(here / "tree", "copy", checksum=True)).files == 1
    assert tree_of(hostile / "copy") == tree_of(here / "tree")


@but_by_an_engine
async def test_a_directory_in_place_of_a_link_is_not_looked_into(volume: Volume, hostile: Path, here: Path) -> None:
    """Of what lies behind the user's links the sandbox learns nothing, and nothing counts as there."""
    small_files(hostile / "tree", 1)
    (hostile / "tree/sub").mkdir()
    (hostile / "tree/sub/file").write_bytes(b"x")
    (here / "elsewhere").mkdir()
    (here / "elsewhere/file").write_bytes(b"x")
    status = (here / "elsewhere/file").stat()
    os.utime(hostile / "tree/sub/file", ns=(0, status.st_mtime_ns))
    (here / "copy").mkdir()
    (here / "copy/sub").symlink_to(here / "elsewhere")
    sent: list[bytes] = []
    pack = volume.pack

    def packing(source: str, there: AsyncIterable[bytes] | None = None) -> AsyncIterator[bytes]:
        return pack(source, None if there is None else noted(there, sent))

    volume.pack = packing  # type: ignore[method-assign]
    with pytest.raises(Exception, match="sub"):
        await volume.pull("tree", here / "copy")
    assert b"file" not in b"".join(sent)


async def noted(pieces: AsyncIterable[bytes], into: list[bytes]) -> AsyncIterator[bytes]:
    async for piece in pieces:
        into.append(piece)
        yield piece
