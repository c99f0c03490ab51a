"""Single files through the daemon, which lends their descriptors to its clients."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.daemon.conftest import Connect, Station
from tests.manager.waiting import until
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.daemon.volume import RemoteVolume
from yaosb_jupyter.errors import NotFoundError, PathError, UnavailableError
from yaosb_jupyter.link import passing
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.types import CopyProgress

MIB = 2**20


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(9 * MIB + 7))
    path.chmod(0o750)
    return path


@pytest.fixture
async def sandbox(manager: AsyncManager) -> AsyncSandbox:
    return await manager.create("lab")


def volume_of(sandbox: AsyncSandbox) -> Volume:
    return sandbox.files._volume()


def workspace(station: Station) -> Path:
    (path,) = (station.place.data_dir / "sandboxes").glob("*/workspace")
    return path


async def there_and_back(sandbox: AsyncSandbox, file: Path) -> None:
    steps: list[CopyProgress] = []
    up = await sandbox.copy_to(file, "new/copy", progress=steps.append)
    down = await sandbox.copy_from("new/copy", file.with_name("back"), progress=steps.append)
    size = file.stat().st_size
    assert (up.size, up.files, up.target, down.size) == (size, 1, "new/copy", size)
    assert (steps[-1].done, steps[-1].total) == (size, size)
    assert file.with_name("back").read_bytes() == file.read_bytes()
    assert file.with_name("back").stat().st_mode & 0o777 == 0o750
    assert (await sandbox.files.stat("new/copy")).mode & 0o777 == 0o750


async def test_a_file_is_not_carried_by_the_connection(
    sandbox: AsyncSandbox, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("it was sent")

    monkeypatch.setattr(RemoteVolume, "pack", never)
    monkeypatch.setattr(RemoteVolume, "unpack", never)
    await there_and_back(sandbox, file)


async def test_a_daemon_without_descriptors_sends_it(
    sandbox: AsyncSandbox, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passing, "FEATURE", "something newer")
    await there_and_back(sandbox, file)


async def test_what_goes_wrong_is_told_as_ever(sandbox: AsyncSandbox, file: Path) -> None:
    await sandbox.files.mkdir("sub")
    with pytest.raises(NotFoundError, match="nothing") as caught:
        await sandbox.copy_from("nothing", file.with_name("back"))
    assert caught.value.sandbox == "lab"
    with pytest.raises(PathError, match="is a directory"):
        await sandbox.copy_to(file, "sub")
    with pytest.raises(PathError, match="leads out"):
        await sandbox.copy_to(file, "../file")
    with pytest.raises(PathError, match="is a directory"):
        (file.parent / "sub").mkdir()
        await sandbox.copy_to(file, "copy")
        await sandbox.copy_from("copy", file.parent / "sub")


async def test_an_error_here_leaves_the_old_file_there(station: Station, sandbox: AsyncSandbox, file: Path) -> None:
    await sandbox.files.write("copy", "old")

    def refuse(step: CopyProgress) -> None:
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        await sandbox.copy_to(file, "copy", progress=refuse)
    assert await sandbox.files.read("copy") == b"old"
    await until(_given(lambda: [path.name for path in workspace(station).iterdir()] == ["copy"]))


HOLDING = """
import asyncio, sys
import yaosb_jupyter
from yaosb_jupyter.daemon.connect import connect_async

async def main():
    manager = await connect_async()
    sandbox = await manager.get("lab")
    volume = sandbox.files._volume()
    async with volume.opened("old") as old, volume.staged("old") as new:
        print(old.descriptor, new.descriptor, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await new.commit()

asyncio.run(main())
"""


async def holding(station: Station) -> subprocess.Popen[str]:
    """A client that holds a file to be read and a new one to replace it, until it is told by a line."""
    holder = station.script(HOLDING)
    assert holder.stdout is not None
    assert await asyncio.to_thread(holder.stdout.readline)
    return holder


def lent(station: Station) -> list[str]:
    """What the daemon has open of workspaces."""
    found = []
    for path in Path(f"/proc/{station.pid}/fd").iterdir():
        with suppress(OSError):
            found.append(str(path.readlink()))
    return [path for path in found if "/workspace" in path]


async def test_nothing_is_left_of_a_client_that_is_killed(station: Station, sandbox: AsyncSandbox) -> None:
    await sandbox.files.write("old", "old")
    before = len(list(Path(f"/proc/{station.pid}/fd").iterdir()))
    holders = [await holding(station) for _ in range(3)]
    assert lent(station)
    for holder in holders:
        holder.kill()
    await until(_given(lambda: not lent(station)))
    await until(_given(lambda: len(list(Path(f"/proc/{station.pid}/fd").iterdir())) == before))
    assert [path.name for path in workspace(station).iterdir()] == ["old"]
    assert await sandbox.files.read("old") == b"old"


async def test_m13_it_is_a_use_as_long_as_the_client_is_connected(manager: AsyncManager, connect: Connect) -> None:
    """And no longer, however long it keeps the descriptor."""
    sandbox = await manager.create("lab", idle_timeout=1)
    await sandbox.files.write("old", "old")
    client = await connect()
    async with volume_of(await client.get("lab")).opened("old") as file:
        assert file is not None
        with pytest.raises(TimeoutError):
            await until(lambda: _gone(manager), within=2.5)
        await client.close()
        await until(lambda: _gone(manager))
        assert os.pread(file.descriptor, 10, 0) == b"old"


async def test_a_sandbox_is_removed_also_while_a_client_holds_its_files(
    station: Station, manager: AsyncManager, sandbox: AsyncSandbox
) -> None:
    await sandbox.files.write("old", "old")
    directory = workspace(station)
    holder = await holding(station)
    await asyncio.wait_for(sandbox.remove(), 20)
    assert not directory.exists()
    _, err = await asyncio.to_thread(holder.communicate, "\n", timeout=20)
    assert "yaosb_jupyter.errors." in err.splitlines()[-1], err
    assert not lent(station)


async def test_a_daemon_that_is_lost_before_the_commit_is_told(
    station: Station, sandbox: AsyncSandbox, file: Path
) -> None:
    async with volume_of(sandbox).staged("copy") as new:
        assert new is not None
        await asyncio.to_thread(station.kill)
        with pytest.raises(UnavailableError, match="lost"):
            await new.commit()


async def _gone(manager: AsyncManager) -> bool:
    return not await manager.list()


def _given(condition: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def ask_it() -> bool:
        return condition()

    return ask_it
