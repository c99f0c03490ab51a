"""``cp``: where copies go, what patterns mean, and what stays whole."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.contract.workspaces import MIB, names
from tests.manager.conftest import Managers, OpenManager, managers_on_memory, memory_rig, open_on_memory, way
from tests.manager.waiting import until
from yaosb_jupyter.core.files.copies import Copies, CopyOptions, Done, Step
from yaosb_jupyter.core.files.places import Place
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.errors import (
    InvalidOptionError,
    LimitExceededError,
    NotFoundError,
    PathError,
    PathNotDirectoryError,
    PathNotFoundError,
)

__all__ = ["managers_on_memory", "memory_rig", "open_on_memory", "way"]


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


class Rig:
    """Two sandboxes, and a directory of this machine to be in."""

    def __init__(self, manager: AsyncManager, root: Path, here: Path) -> None:
        self.manager = manager
        self.root = root
        self.here = here
        self.steps: list[Step] = []

    async def cp(self, *paths: str, **options: Any) -> list[Done]:
        """As typed: the last path is the target, ``lab`` is in use."""
        copies = Copies(lambda ref: self.manager.get(ref or "lab"), self.steps.append, CopyOptions(**options))
        *sources, target = map(Place.parse, paths)
        return list(await copies.run(sources, target))

    async def workspace(self, name: str = "lab") -> Path:
        return self.root / "data/sandboxes" / (await self.manager.get(name)).uid / "workspace"


@pytest.fixture
async def rig(
    open_on_memory: OpenManager, managers_on_memory: Managers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Rig:
    manager = await open_on_memory()
    for name in ("lab", "other"):
        await manager.create(name)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return Rig(manager, managers_on_memory.rig.root, tmp_path / "here")


async def test_a_file_goes_in_and_comes_back(rig: Rig) -> None:
    content = os.urandom(3 * MIB + 7)
    (rig.here / "a.bin").write_bytes(content)
    (done,) = await rig.cp("a.bin", "lab:deep/b.bin")
    assert (await rig.workspace() / "deep/b.bin").read_bytes() == content
    assert (done.source, done.target) == ("a.bin", "lab:deep/b.bin")
    assert (done.copied.files, done.copied.size) == (1, len(content))
    assert [step.progress.done for step in rig.steps] == sorted(step.progress.done for step in rig.steps)
    last = rig.steps[-1].progress
    assert last.done == last.total == len(content)
    (done,) = await rig.cp(":deep/b.bin", "c.bin")
    assert (done.source, done.target) == ("lab:deep/b.bin", "c.bin")
    assert (rig.here / "c.bin").read_bytes() == content


@pytest.mark.parametrize("target", [":", "lab:/workspace", ":.", "lab:./"])
async def test_a_file_goes_into_the_workspace_under_its_name(rig: Rig, target: str) -> None:
    (rig.here / "a").write_text("x")
    (done,) = await rig.cp("a", target)
    assert done.target == "lab:a"
    assert (await rig.workspace() / "a").read_text() == "x"


async def test_a_directory_takes_what_is_copied_to_it(rig: Rig) -> None:
    (rig.here / "a").write_text("x")
    (rig.here / "b").write_text("y")
    (await rig.workspace() / "sub").mkdir()
    assert [done.target for done in await rig.cp("a", ":sub")] == ["lab:sub/a"]
    assert [done.target for done in await rig.cp("a", "b", ":new/")] == ["lab:new/a", "lab:new/b"]
    (rig.here / "into").mkdir()
    await rig.cp(":new/a", ":sub/a", ":new", "into")
    assert names(rig.here / "into") == ["a", "new"]
    with pytest.raises(PathNotDirectoryError, match="end it with /"):
        await rig.cp("a", "b", ":nowhere")
    assert names(await rig.workspace()) == ["new", "sub"]


async def test_the_whole_workspace_has_a_name(rig: Rig) -> None:
    (await rig.workspace() / "note").write_text("n")
    assert [done.target for done in await rig.cp(":", ".")] == ["workspace"]
    assert (rig.here / "workspace/note").read_text() == "n"
    await rig.cp("lab:", "other:")
    assert names(await rig.workspace("other") / "workspace") == ["note"]


async def test_patterns_mean_files_at_both_ends(rig: Rig) -> None:
    inside = await rig.workspace()
    for top in (rig.here, inside):
        (top / "data/deep").mkdir(parents=True)
        for name in ("x.csv", "with space.csv", ".hidden.csv", "y.txt", "deep/z.csv"):
            (top / "data" / name).write_text(name)
    await rig.cp("data/*.csv", ":in/")
    assert names(inside / "in") == ["with space.csv", "x.csv"]
    await rig.cp("data/**/*.csv", ":all/")
    assert names(inside / "all") == ["with space.csv", "x.csv", "z.csv"]
    await rig.cp(":data/*.csv", "lab:data/**/z.csv", "out/")
    assert names(rig.here / "out") == ["with space.csv", "x.csv", "z.csv"]
    await rig.cp(":data/with space.csv", ":data/[xy].*", "other:")
    assert names(await rig.workspace("other")) == ["with space.csv", "x.csv", "y.txt"]
    with pytest.raises(PathNotFoundError, match="nothing matches"):
        await rig.cp(":data/*.parquet", "out/")


async def test_what_is_there_by_that_name_is_no_pattern(rig: Rig) -> None:
    for top in (rig.here, await rig.workspace()):
        (top / "a[1].txt").write_text("itself")
        (top / "a1.txt").write_text("matched")
    await rig.cp("a[1].txt", ":x")
    await rig.cp(":a[1].txt", "y")
    assert (await rig.workspace() / "x").read_text() == (rig.here / "y").read_text() == "itself"


async def test_from_one_sandbox_to_another(rig: Rig) -> None:
    inside, other = await rig.workspace(), await rig.workspace("other")
    (inside / "tree/sub/empty").mkdir(parents=True)
    (inside / "tree/big").write_bytes(os.urandom(3 * MIB))
    (inside / "tree/run").write_text("#!/bin/sh\n")
    (inside / "tree/run").chmod(0o755)
    (inside / "tree/link").symlink_to("run")
    (done,) = await rig.cp("lab:tree", "other:copy")
    assert (done.copied.files, done.copied.skipped) == (2, ("link",))
    assert done.copied.size == rig.steps[-1].progress.done == rig.steps[-1].progress.total
    assert (other / "copy/big").read_bytes() == (inside / "tree/big").read_bytes()
    assert (other / "copy/run").stat().st_mode & 0o777 == 0o755
    assert (other / "copy/sub/empty").is_dir()
    await rig.cp(":tree/run", ":second")
    assert (inside / "second").read_text() == "#!/bin/sh\n"
    for target in (":tree", ":tree/sub", ":tree/sub/new"):
        with pytest.raises(PathError, match="onto or into itself"):
            await rig.cp(":tree", target) if target != ":tree" else await rig.cp(":tree", ":")
    assert names(inside / "tree") == ["big", "link", "run", "sub"]


async def test_what_cannot_be_copied_is_told(rig: Rig) -> None:
    (rig.here / "a").write_text("x")
    with pytest.raises(InvalidOptionError, match="NAME:path"):
        await rig.cp("a", "b")
    with pytest.raises(InvalidOptionError, match="NAME:path"):
        await rig.cp("a", "lab:x", "here/")
    with pytest.raises(PathNotFoundError, match="NAME:path"):
        await rig.cp("none", ":x")
    with pytest.raises(PathNotFoundError):
        await rig.cp(":none", "x")
    with pytest.raises(NotFoundError, match="nobody"):
        await rig.cp("a", "nobody:x")
    for path in (":../x", ":/etc/passwd"):
        with pytest.raises(PathError):
            await rig.cp(path, "got")
        with pytest.raises(PathError):
            await rig.cp("a", path)
    (await rig.workspace() / "big").write_bytes(b"x" * MIB)
    with pytest.raises(LimitExceededError, match="--max-size"):
        await rig.cp(":big", "big", max_size="1k")
    assert names(rig.here) == ["a"]


async def test_x11_a_link_out_of_the_workspace_is_refused(rig: Rig) -> None:
    (rig.here / "secret").write_text("s")
    (await rig.workspace() / "link").symlink_to(rig.here / "secret")
    with pytest.raises(PathError):
        await rig.cp(":link", "got")
    assert names(rig.here) == ["secret"]


async def test_a_copy_that_is_cancelled_leaves_nothing_under_its_name(rig: Rig) -> None:
    (rig.here / "big").touch()
    os.truncate(rig.here / "big", 1 << 36)
    (await rig.workspace() / "big").touch()
    os.truncate(await rig.workspace() / "big", 1 << 33)
    for paths in (("big", "lab:there"), ("lab:big", "there"), ("lab:big", "other:there")):
        rig.steps.clear()
        copying = asyncio.create_task(rig.cp(*paths))

        async def has_begun() -> bool:
            return any(step.progress.done for step in rig.steps)

        await until(has_begun)
        copying.cancel()
        began = asyncio.get_running_loop().time()
        await asyncio.wait([copying])
        assert copying.cancelled()
        assert asyncio.get_running_loop().time() - began < 0.3
    for place in (rig.here, await rig.workspace(), await rig.workspace("other")):
        assert "there" not in names(place)
