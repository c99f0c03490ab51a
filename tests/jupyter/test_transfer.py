from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.core.service import Service
from yaosb_jupyter.errors import InvalidOptionError, NotFoundError, PathError
from yaosb_jupyter.jupyter.places import Place, direction
from yaosb_jupyter.jupyter.transfer import download, upload
from yaosb_jupyter.tai.volumes.local import LocalVolume
from yaosb_jupyter.types import CopyProgress, SandboxInfo


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "workspace"
    path.mkdir()
    return path


@pytest.fixture
def here(tmp_path: Path) -> Path:
    path = tmp_path / "here"
    path.mkdir()
    return path


class OneVolume:
    """As much of a service as copies need."""

    def __init__(self, volume: LocalVolume) -> None:
        self._volume = volume

    def volume(self, ref: str) -> LocalVolume:
        return self._volume


def sandbox_of(directory: Path) -> AsyncSandbox:
    info = SimpleNamespace(uid="uid", id="lab")
    return AsyncSandbox(cast(Service, OneVolume(LocalVolume(directory))), cast(SandboxInfo, info))


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def silent(step: CopyProgress) -> None:
    pass


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("lab:a/b", Place(ref="lab", path="a/b")),
        (":a", Place(ref="", path="a")),
        ("lab:", Place(ref="lab", path="")),
        ("a/b:c", Place(ref=None, path="a/b:c")),
        ("./a:b", Place(ref=None, path="./a:b")),
        ("/a:b", Place(ref=None, path="/a:b")),
        ("a", Place(ref=None, path="a")),
    ],
)
def test_places(text: str, place: Place) -> None:
    assert Place.parse(text) == place


def test_a_path_that_is_always_inside() -> None:
    assert Place.inside("data") == Place(ref="", path="data")
    assert Place.inside("lab:data") == Place(ref="lab", path="data")


@pytest.mark.parametrize("ends", [("a", "b"), (":a", "lab:b")])
def test_one_end_of_a_copy_is_in_a_sandbox(ends: tuple[str, str]) -> None:
    with pytest.raises(InvalidOptionError, match="NAME:path"):
        direction(*ends)


async def test_a_file_goes_in_and_comes_back(workspace: Path, here: Path) -> None:
    content = os.urandom(3 * 2**20 + 7)
    (here / "a.bin").write_bytes(content)
    inside = sandbox_of(workspace)
    steps: list[CopyProgress] = []
    copied = await upload(inside, here / "a.bin", "deep/b.bin", steps.append)
    assert (workspace / "deep/b.bin").read_bytes() == content
    assert (copied.target, copied.files, copied.size) == ("deep/b.bin", 1, len(content))
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert steps[-1].done == steps[-1].total == len(content)

    back = await download(inside, "deep/b.bin", here / "c.bin", steps.append)
    assert (here / "c.bin").read_bytes() == content
    assert (back.files, back.size) == (1, len(content))


@pytest.mark.parametrize("target", ["", "/workspace", "."])
async def test_a_file_goes_into_the_workspace_under_its_name(workspace: Path, here: Path, target: str) -> None:
    (here / "a").write_text("x")
    assert (await upload(sandbox_of(workspace), here / "a", target, silent)).target == "a"
    assert (workspace / "a").read_text() == "x"


async def test_a_directory_takes_what_is_copied_to_it(workspace: Path, here: Path) -> None:
    (here / "a").write_text("x")
    (workspace / "sub").mkdir()
    inside = sandbox_of(workspace)
    assert (await upload(inside, here / "a", "sub", silent)).target == "sub/a"
    assert (await upload(inside, here / "a", "new/", silent)).target == "new/a"
    assert (await download(inside, "sub/a", here, silent)).target == str(here / "a")


async def test_trees_go_both_ways_with_modes_and_empty_directories(workspace: Path, here: Path) -> None:
    (here / "tree/sub/empty").mkdir(parents=True)
    (here / "tree/sub/run.sh").write_text("#!/bin/sh\n")
    (here / "tree/sub/run.sh").chmod(0o755)
    (here / "tree/note").write_text("n")
    inside = sandbox_of(workspace)
    assert (await upload(inside, here / "tree", "copy", silent)).files == 2
    assert (workspace / "copy/sub/empty").is_dir()
    assert (workspace / "copy/sub/run.sh").stat().st_mode & 0o777 == 0o755

    assert (await download(inside, "copy", here / "back", silent)).files == 2
    assert (here / "back/sub/empty").is_dir()
    assert (here / "back/sub/run.sh").stat().st_mode & 0o777 == 0o755
    assert (here / "back/note").read_text() == "n"

    whole = await download(inside, "", here, silent)
    assert (here / "workspace/copy/note").read_text() == "n"
    assert whole.target == str(here / "workspace")


async def test_x11_links_and_special_files_in_a_tree_are_left_out_and_told(workspace: Path, here: Path) -> None:
    secret = here / "secret"
    secret.write_text("s")
    tree = workspace / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(secret)
    (tree / "loop").symlink_to(tree)
    os.mkfifo(tree / "fifo")
    (tree / "plain").write_text("p")
    copied = await download(sandbox_of(workspace), "tree", here / "out", silent)
    assert sorted(copied.skipped) == ["fifo", "link", "loop"]
    assert names(here / "out") == ["plain"]

    await upload(sandbox_of(workspace), here / "out", "again", silent)
    (here / "out/link").symlink_to(secret)
    assert (await upload(sandbox_of(workspace), here / "out", "third", silent)).skipped == ("link",)


async def test_x11_a_link_out_of_the_workspace_is_refused(workspace: Path, here: Path) -> None:
    (here / "secret").write_text("s")
    (workspace / "link").symlink_to(here / "secret")
    with pytest.raises(PathError):
        await download(sandbox_of(workspace), "link", here / "got", silent)
    assert names(here) == ["secret"]


async def test_a_missing_source_is_told(workspace: Path, here: Path) -> None:
    with pytest.raises(NotFoundError, match="NAME:path"):
        await upload(sandbox_of(workspace), here / "none", "x", silent)
    with pytest.raises(NotFoundError):
        await download(sandbox_of(workspace), "none", here / "x", silent)
