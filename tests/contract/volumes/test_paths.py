"""How files are named, and which paths lead nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.workspaces import (
    NAMES,
    Rig,
    all_calls,
    names,
    read,
    write,
)
from yaosb_jupyter.errors import NotFoundError, PathError
from yaosb_jupyter.tai.volumes.base import Volume


@pytest.mark.parametrize("name", NAMES)
async def test_a_name_is_kept_as_it_is(name: str, rig: Rig, volume: Volume, hostile: Path) -> None:
    if not rig.host_paths and "\udcff" in name:
        with pytest.raises(PathError, match="UTF-8"):
            await write(volume, name, b"content")
        return
    info = await write(volume, f"dir/{name}", b"content")
    assert (info.name, info.path) == (name, f"dir/{name}")
    assert names(hostile / "dir") == [name]
    assert await read(volume, f"dir/{name}") == b"content"
    assert [entry.name for entry in await volume.list("dir")] == [name]
    await volume.rename(f"dir/{name}", f"{name}")
    assert (await volume.stat(name)).size == 7
    await volume.remove(name)
    assert [entry.name for entry in await volume.list()] == ["dir"]


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
    for call in all_calls(volume, path):
        with pytest.raises(PathError):
            await call()
    with pytest.raises(PathError):
        await volume.rename("mine", path)


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


@pytest.mark.parametrize("path", ["nothing", "nothing/below", "dir/nothing"])
async def test_a_missing_file_is_not_found(path: str, rig: Rig, volume: Volume, hostile: Path) -> None:
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
        assert caught.value.sandbox == rig.sandbox
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
