"""A disk that is full, here: what was whole stays, nothing is half there under its name, and it is said."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.workspaces import MIB, names
from tests.rig.require import require
from yaosb_jupyter.blocking.sandbox import Sandbox
from yaosb_jupyter.errors import UnavailableError


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    require("root")
    path = tmp_path / "small"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(path)], check=True)
    yield path
    subprocess.run(["umount", str(path)], check=True)


def test_a_file_that_does_not_fit_leaves_the_old_one(sandbox: Sandbox, workspace: Path, small: Path) -> None:
    (workspace / "big").write_bytes(b"x" * 9 * MIB)
    (small / "big").write_text("old")
    with pytest.raises(UnavailableError, match=r"no room is left to write .*big.*No space left"):
        sandbox.copy_from("big", small / "big")
    assert names(small) == ["big"]
    assert (small / "big").read_text() == "old"


def test_a_tree_that_does_not_fit_leaves_whole_files_only(sandbox: Sandbox, workspace: Path, small: Path) -> None:
    (workspace / "tree").mkdir()
    for number in range(9):
        (workspace / f"tree/{number}").write_bytes(b"x" * MIB)
    with pytest.raises(UnavailableError, match="no room is left"):
        sandbox.copy_from("tree", small / "tree")
    assert all(path.stat().st_size == MIB for path in (small / "tree").iterdir())
    assert len(names(small / "tree")) < 9


def test_a_workspace_that_is_full_keeps_the_old_file(sandbox: Sandbox, workspace: Path, small: Path) -> None:
    subprocess.run(["mount", "--bind", str(small), str(workspace)], check=True)
    try:
        path = sandbox.files / "file"
        path.write_text("old")
        with pytest.raises(UnavailableError, match="no room is left"), path.open("wb") as file:
            for _ in range(9):
                file.write(b"x" * MIB)
        assert path.read_text() == "old"
        assert names(workspace) == ["file"]
    finally:
        subprocess.run(["umount", str(workspace)], check=True)
