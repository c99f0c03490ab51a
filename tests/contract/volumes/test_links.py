"""Links, FIFOs, sockets and devices: followed within the workspace, or refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.contract.workspaces import (
    Rig,
    all_calls,
    names,
    plant,
    read,
    write,
)
from yaosb_jupyter.errors import PathError, SandboxError
from yaosb_jupyter.tai.volumes.base import Volume


@pytest.mark.parametrize("target", ["..", "../", "/", "../../..", "x/../..", "/proc/self/root", "/proc/self/cwd"])
async def test_x11_a_link_out_of_the_workspace_is_refused(target: str, volume: Volume, hostile: Path) -> None:
    (hostile / "x").mkdir()
    (hostile / "link").symlink_to(target)
    for path in ("link/secret", "link/new/file"):
        for call in all_calls(volume, path):
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


async def test_links_within_the_workspace_are_followed(rig: Rig, volume: Volume, hostile: Path) -> None:
    (hostile / "real").mkdir()
    (hostile / "deep").mkdir()
    (hostile / "relative").symlink_to("real")
    (hostile / "absolute").symlink_to("/workspace/real")
    (hostile / "hosts").symlink_to(hostile / "real" if rig.host_paths else "/workspace/real")
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
