"""Single files of this machine, copied from descriptor to descriptor."""

from __future__ import annotations

import asyncio
import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.contract.workspaces import MIB, descriptors_into, names
from tests.rig.require import require
from yaosb_jupyter.errors import PathError, UnavailableError
from yaosb_jupyter.tai.volumes import copying
from yaosb_jupyter.tai.volumes.copying import Copy
from yaosb_jupyter.tai.volumes.descriptors import OpenFile
from yaosb_jupyter.tai.volumes.local import LocalVolume
from yaosb_jupyter.types import CopyProgress

SIZE = 9 * MIB + 7  # more than two pieces
Way = Callable[[int, int, int], int]


@pytest.fixture
def volume(workspace: Path) -> LocalVolume:
    return LocalVolume(workspace, sandbox="box")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """One of this machine's user."""
    path = tmp_path / "file"
    path.write_bytes(os.urandom(SIZE))
    path.chmod(0o640)
    return path


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A directory on another file system."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="yaosb-") as path:
        yield Path(path)


def never(source: int, target: int, count: int) -> int:
    raise AssertionError("it went another way")


def refuses(number: int) -> Way:
    def way(source: int, target: int, count: int) -> int:
        raise OSError(number, os.strerror(number))

    return way


async def there_and_back(volume: LocalVolume, file: Path, back: Path) -> None:
    steps: list[CopyProgress] = []
    os.utime(file, ns=(1, file.stat().st_mtime_ns + 1))  # it was changed: else nothing is copied
    pushed = await volume.push(file, "new/copy", steps.append)
    pulled = await volume.pull("new/copy", back, steps.append)
    assert back.read_bytes() == file.read_bytes()
    assert (pushed.target, pushed.files, pushed.size, pushed.skipped) == ("new/copy", 1, SIZE, ())
    assert (pulled.target, pulled.files, pulled.size) == (str(back), 1, SIZE)
    assert (steps[-1].done, steps[-1].total) == (SIZE, SIZE)
    assert back.stat().st_mode & 0o7777 == 0o640
    assert back.stat().st_mtime_ns == file.stat().st_mtime_ns


async def test_the_kernel_copies(
    volume: LocalVolume, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "_WAYS", (*copying._KERNEL, never))
    await there_and_back(volume, file, tmp_path / "back")


async def test_between_file_systems_too(
    volume: LocalVolume, file: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "_WAYS", (*copying._KERNEL, never))
    await there_and_back(volume, file, elsewhere / "back")
    await there_and_back(LocalVolume(elsewhere), file, elsewhere / "again")


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM])
async def test_what_the_kernel_does_not_copy_is_read_and_written(
    number: int, volume: LocalVolume, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "_WAYS", (refuses(number), copying._by_reading))
    await there_and_back(volume, file, tmp_path / "back")


async def test_a_way_that_ends_in_the_middle_is_followed_by_the_next(
    volume: LocalVolume, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(source: int, target: int, count: int) -> int:
        return copying._by_range(source, target, MIB) if os.lseek(source, 0, os.SEEK_CUR) < 3 * MIB else 0

    monkeypatch.setattr(copying, "_WAYS", (ends, copying._by_sendfile, copying._by_reading))
    await there_and_back(volume, file, tmp_path / "back")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
async def test_what_goes_wrong_leaves_the_old_file(
    number: int, volume: LocalVolume, workspace: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "copy").write_bytes(b"old")
    monkeypatch.setattr(copying, "_WAYS", (refuses(number), copying._by_reading))
    with pytest.raises(UnavailableError, match="'copy'"):
        await volume.push(file, "copy")
    assert (workspace / "copy").read_bytes() == b"old"
    assert names(workspace) == ["copy"]


def test_a_file_that_is_cut_shorter_meanwhile_is_no_longer_than_that(file: Path, tmp_path: Path) -> None:
    with file.open("rb") as source, (tmp_path / "target").open("wb") as target:
        copy = Copy(OpenFile(descriptor=source.fileno(), status=file.stat()), target.fileno())
        steps = copy.steps()
        next(steps)
        os.truncate(file, 5 * MIB)
        list(steps)
    assert copy.done == 5 * MIB
    assert (tmp_path / "target").read_bytes() == file.read_bytes()


async def test_a_file_that_grows_meanwhile_is_copied_as_it_was(
    volume: LocalVolume, workspace: Path, file: Path
) -> None:
    async with volume.staged("copy") as new:
        assert new is not None
        with file.open("r+b") as source:
            copy = Copy(OpenFile(descriptor=source.fileno(), status=file.stat()), new.descriptor)
            source.seek(0, os.SEEK_END)
            source.write(b"more")
            source.flush()
            os.lseek(source.fileno(), 0, os.SEEK_SET)
            list(copy.steps())
        assert (await new.commit()).size == SIZE


@pytest.mark.parametrize("size", [0, 1, 4 * MIB, 4 * MIB + 1])
async def test_files_of_all_sizes(size: int, volume: LocalVolume, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(os.urandom(size))
    steps: list[CopyProgress] = []
    assert (await volume.push(tmp_path / "file", "copy", steps.append)).size == size
    assert (await volume.pull("copy", tmp_path / "back")).size == size
    assert (tmp_path / "back").read_bytes() == (tmp_path / "file").read_bytes()
    assert steps[-1] == CopyProgress(path="", done=size, total=size)


async def test_x10_a_cancelled_copy_leaves_the_old_file(
    volume: LocalVolume, workspace: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "copy").write_bytes(b"old")
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slowly(source: int, target: int, count: int) -> int:
        loop.call_soon_threadsafe(begun.set)
        return copying._by_range(source, target, 1)

    monkeypatch.setattr(copying, "_WAYS", (slowly,))
    copy = asyncio.ensure_future(volume.push(file, "copy"))
    await asyncio.wait_for(begun.wait(), 10)
    copy.cancel()
    await asyncio.wait([copy], timeout=10)
    assert copy.cancelled()
    assert (workspace / "copy").read_bytes() == b"old"
    assert names(workspace) == ["copy"]
    assert not descriptors_into(workspace, (os.getpid(),))


async def test_progress_is_told_while_it_is_copied(
    volume: LocalVolume, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()

    def after_it_was_told(source: int, target: int, count: int) -> int:
        if os.lseek(source, 0, os.SEEK_CUR) >= 4 * MIB:
            asyncio.run_coroutine_threadsafe(asyncio.wait_for(told.wait(), 10), loop).result()
        return copying._by_range(source, target, count)

    monkeypatch.setattr(copying, "_WAYS", (after_it_was_told,))
    monkeypatch.setattr("yaosb_jupyter.tai.volumes.trees._SLICE", 0)
    await volume.push(file, "copy", lambda step: told.set() if 0 < step.done < step.total else None)
    assert told.is_set()


async def test_a_staged_file_that_is_not_committed_was_never_there(volume: LocalVolume, workspace: Path) -> None:
    for name in ("old", "new/one"):
        (workspace / "old").write_bytes(b"old")
        async with volume.staged(name) as new:
            assert new is not None
            os.write(new.descriptor, b"half")
    assert names(workspace) == ["new", "old"]
    assert names(workspace / "new") == []
    assert (workspace / "old").read_bytes() == b"old"


async def test_a_directory_has_no_descriptor(volume: LocalVolume, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    for path in ("", "sub"):
        async with volume.opened(path) as file:
            assert file is None
    with pytest.raises(PathError, match="is the workspace itself"):
        volume.staged("")
    with pytest.raises(PathError, match="is a directory"):
        async with volume.staged("sub"):
            pass


async def test_what_is_copied_in_belongs_to_the_workspaces_owner(
    volume: LocalVolume, workspace: Path, file: Path
) -> None:
    require("root")
    os.chown(workspace, 12345, 54321)
    await volume.push(file, "new/copy")
    for path in (workspace / "new", workspace / "new/copy"):
        assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


@pytest.mark.parametrize("checksum", [False, True])
async def test_a_file_that_is_there_is_not_copied(
    checksum: bool, volume: LocalVolume, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await volume.push(file, "copy")
    await volume.pull("copy", tmp_path / "back")
    if checksum:
        os.utime(file, ns=(1, 1))
        os.utime(tmp_path / "back", ns=(2, 2))
    monkeypatch.setattr(copying, "_WAYS", (never,))
    for copied in (
        await volume.push(file, "copy", checksum=checksum),
        await volume.pull("copy", tmp_path / "back", checksum=checksum),
    ):
        assert (copied.files, copied.size, copied.unchanged, copied.skipped) == (0, 0, 1, ())


async def test_a_file_of_other_content_is_copied_if_asked_to_look(
    volume: LocalVolume, file: Path, tmp_path: Path
) -> None:
    await volume.push(file, "copy")
    time = file.stat().st_mtime_ns
    file.write_bytes(os.urandom(SIZE))
    os.utime(file, ns=(time, time))
    assert (await volume.push(file, "copy")).unchanged == 1
    assert (await volume.push(file, "copy", checksum=True)).files == 1
    (tmp_path / "back").write_bytes(b"x" * SIZE)
    (tmp_path / "back").chmod(0o640)
    os.utime(tmp_path / "back", ns=(time, time))
    assert (await volume.pull("copy", tmp_path / "back")).unchanged == 1
    assert (await volume.pull("copy", tmp_path / "back", checksum=True)).files == 1
    assert (tmp_path / "back").read_bytes() == file.read_bytes()
