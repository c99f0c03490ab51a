"""What a volume tells of a path: of links and what they lead to, and errors that are Python's own too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.contract.workspaces import read, write
from yaosb_jupyter.errors import (
    NotFoundError,
    PathError,
    PathIsDirectoryError,
    PathNotDirectoryError,
    PathNotFoundError,
)
from yaosb_jupyter.tai.volumes.base import Volume


@pytest.fixture
def links(hostile: Path) -> Path:
    (hostile / "dir").mkdir()
    (hostile / "dir/file").write_bytes(b"12345")
    for name, target in {
        "to-file": "dir/file",
        "to-dir": "dir",
        "to-link": "to-dir",
        "absolute": "/workspace/dir/file",
        "to-top": ".",
        "dir/up": "..",
        "broken": "nothing",
        "out": "../secret",
        "loop": "loop",
    }.items():
        (hostile / name).symlink_to(target)
    os.mkfifo(hostile / "fifo")
    return hostile


async def test_a_link_is_told_itself_or_what_it_leads_to(volume: Volume, links: Path) -> None:
    itself = await volume.stat("to-file")
    assert (itself.link_target, itself.is_dir) == ("dir/file", False)
    for name in ("to-file", "absolute", "dir/file"):
        there = await volume.stat(name, follow=True)
        assert (there.path, there.size, there.is_dir, there.link_target) == (name, 5, False, None)
    for name in ("to-dir", "to-link", "to-top", "dir/up", "dir", ""):
        assert (await volume.stat(name, follow=True)).is_dir
    assert not (await volume.stat("fifo", follow=True)).is_dir  # and nobody waits for its other end


@pytest.mark.parametrize("name", ["broken", "nothing", "dir/nothing", "nothing/x"])
async def test_what_is_not_there_is_a_file_not_found_error(volume: Volume, links: Path, name: str) -> None:
    with pytest.raises(PathNotFoundError) as caught:
        await volume.stat(name, follow=True)
    assert isinstance(caught.value, NotFoundError)
    assert isinstance(caught.value, FileNotFoundError)
    assert name in str(caught.value)
    with pytest.raises(FileNotFoundError):
        await read(volume, name)


@pytest.mark.parametrize("name", ["out", "loop"])
async def test_x11_a_link_that_leads_out_or_nowhere_is_refused(volume: Volume, links: Path, name: str) -> None:
    with pytest.raises(PathError):
        await volume.stat(name, follow=True)


async def test_a_directory_where_a_file_was_meant_and_the_other_way(volume: Volume, links: Path) -> None:
    with pytest.raises(PathIsDirectoryError) as directory:
        await read(volume, "dir")
    assert isinstance(directory.value, IsADirectoryError)
    with pytest.raises(PathIsDirectoryError):
        await write(volume, "dir", b"x")
    with pytest.raises(PathNotDirectoryError) as file:
        await volume.list("dir/file")
    assert isinstance(file.value, NotADirectoryError)
    with pytest.raises(NotADirectoryError):
        await volume.stat("dir/file/below")
