"""Paths in a sandbox: what pathlib's can do, they can."""

from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path, PurePosixPath

import pytest

from tests.contract.workspaces import NAMES, names
from yaosb_jupyter.blocking.manager import Manager
from yaosb_jupyter.blocking.sandbox import Sandbox
from yaosb_jupyter.errors import InvalidOptionError, NotFoundError, PathError, PathLinkError

# Without a look at the files


def test_its_parts_are_those_of_pathlib(sandbox: Sandbox) -> None:
    path = sandbox.files / "data" / "x.tar.gz"
    pure = PurePosixPath("data/x.tar.gz")
    for name in ("name", "stem", "suffix", "suffixes", "parts"):
        assert getattr(path, name) == getattr(pure, name)
    assert str(path) == "data/x.tar.gz"
    assert repr(path) == "SandboxPath('lab:data/x.tar.gz')"
    assert path.parent == sandbox.files / "data"
    assert [str(each) for each in path.parents] == ["data", "."]
    assert path.joinpath("..", "y") == path / ".." / "y"
    assert path.with_name("y") == path.parent / "y"
    assert path.with_stem("y").name == "y.gz"
    assert path.with_suffix(".zip").name == "x.tar.zip"
    assert path.match("*.gz")
    assert path.relative_to("data") == path.relative_to(path.parent) == PurePosixPath("x.tar.gz")
    assert path.is_relative_to(sandbox.files.root)
    assert not path.is_relative_to("other")
    assert path.as_uri() == "sandbox://lab/data/x.tar.gz"
    assert sandbox.files.root.as_uri() == "sandbox://lab"
    assert not isinstance(path, os.PathLike)
    assert copy.copy(path) is path
    with pytest.raises(TypeError, match="sandbox://lab/data"):
        pickle.dumps(path)


def test_a_path_is_the_same_however_it_is_named(sandbox: Sandbox) -> None:
    root = sandbox.files.root
    assert sandbox.files / "/workspace/data/x" == sandbox.files / "data/x" == root / "data" / "x"
    assert sandbox.files / "/workspace" == root == root.parent
    assert hash(root / "a") == hash(sandbox.files / "a")
    assert sorted([root / "b", root / "a/b", root / "a"]) == [root / "a", root / "a/b", root / "b"]
    assert root / "a" < root / "b" <= root / "b" > root / "a" >= root / "a"
    assert root / "a" != "a"


def test_paths_of_two_sandboxes_are_never_taken_for_each_other(manager: Manager, sandbox: Sandbox) -> None:
    other = manager.create("other")
    assert other.files / "a" != sandbox.files / "a"
    with pytest.raises(TypeError):
        sorted([other.files / "a", sandbox.files / "b"])
    (sandbox.files / "a").write_text("x")
    with pytest.raises(InvalidOptionError, match="another sandbox"):
        (sandbox.files / "a").rename(other.files / "b")
    with pytest.raises(InvalidOptionError, match="another sandbox"):
        sandbox.copy_from(other.files / "a", "here")
    other.remove()


# What is there


def test_it_tells_what_is_there(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / "dir").mkdir()
    (workspace / "dir/file").write_bytes(b"12345")
    for name, target in {"to-file": "dir/file", "to-dir": "dir", "broken": "no"}.items():
        (workspace / name).symlink_to(target)
    os.mkfifo(workspace / "fifo")
    for name in ("dir", "dir/file", "to-file", "to-dir", "broken", "fifo", "no", "dir/file/below", "."):
        path, real = sandbox.files / name, workspace / name
        for question in ("exists", "is_file", "is_dir", "is_symlink"):
            assert getattr(path, question)() == getattr(real, question)(), (name, question)
    assert (sandbox.files / "to-file").stat().size == 5
    assert (sandbox.files / "to-file").stat(follow_symlinks=False).link_target == "dir/file"
    with pytest.raises(FileNotFoundError) as caught:
        (sandbox.files / "no").stat()
    assert isinstance(caught.value, NotFoundError)
    assert caught.value.sandbox == "lab"


def test_x11_what_leads_out_is_refused_by_name(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / "out").symlink_to("/etc")
    for path in (sandbox.files / "../x", sandbox.files / "/etc/passwd", sandbox.files / "out/passwd"):
        for act in (path.stat, path.read_bytes, path.unlink, lambda path=path: path.open("w").close()):
            with pytest.raises(PathError, match="out of the workspace"):
                act()
    with pytest.raises(PathError, match="out of the workspace"):
        (sandbox.files / "../x").exists()
    for pattern in ("../*", "*/../../*"):
        with pytest.raises(PathError, match="out of the workspace"):
            list(sandbox.files.root.glob(pattern))


def test_a_link_that_leads_out_or_in_a_circle_leads_nowhere(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / "file").touch()
    for name, target in {"python3": "/usr/bin/python3", "etc": "/etc", "up": "../../..", "circle": "circle"}.items():
        (workspace / name).symlink_to(target)
    root = sandbox.files.root
    assert [path.name for path in root.iterdir() if path.is_file()] == ["file"]
    for path in (root / "python3", root / "etc", root / "up", root / "circle"):
        assert (path.exists(), path.is_file(), path.is_dir(), path.is_symlink()) == (False, False, False, True)
        assert not (path / "passwd").exists()
        with pytest.raises(PathLinkError):
            path.stat()
        assert list(path.glob("*")) == []
    assert [path.name for path in root.rglob("*")] == ["circle", "etc", "file", "python3", "up"]
    assert [str(path) for path in root.glob("*/*")] == []


def test_x19_a_search_does_not_end_early_where_the_sandbox_is_lost(manager: Manager) -> None:
    sandbox = manager.create("other")
    for name in ("a/1", "b/2", "c/3"):
        (sandbox.files / name).write_text("x")
    found = sandbox.files.root.glob("*/*")
    assert next(found).name == "1"
    sandbox.remove()
    with pytest.raises(NotFoundError):
        list(found)


def test_any_name_is_a_name(sandbox: Sandbox, workspace: Path) -> None:
    for number, name in enumerate(NAMES):
        assert (sandbox.files / "dir" / name).write_bytes(b"%d" % number) == len(str(number))
        assert (sandbox.files / "dir" / name).read_bytes() == b"%d" % number
    assert [path.name for path in (sandbox.files / "dir").iterdir()] == names(workspace / "dir")


PATTERNS = [
    "*",
    "*.csv",
    "**/*.csv",
    "a/*",
    "a/**/*.csv",
    "?.csv",
    "[bx].csv",
    "**/deep/*",
    "a/b.csv",
    "*/b.csv",
    "no/*",
]
PATTERNS += [".*", "**/.hidden/*", "a/../*.csv", "**/**/b.csv", "link/*.csv", "**/b.csv"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_mean_what_they_mean_to_pathlib(sandbox: Sandbox, workspace: Path, pattern: str) -> None:
    for name in ("x.csv", "y.txt", "a/b.csv", "a/c.txt", "a/deep/er/b.csv", "a/deep/x", ".hidden/b.csv", "a/.h.csv"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).touch()
    (workspace / "link").symlink_to("a")
    expected = sorted(os.path.normpath(path.relative_to(workspace)) for path in workspace.glob(pattern))
    found = [str(path) for path in sandbox.files.root.glob(pattern)]
    assert sorted(os.path.normpath(path) for path in found) == expected
    assert len(set(found)) == len(found)


def test_patterns_below_a_directory_and_at_any_depth(sandbox: Sandbox, workspace: Path) -> None:
    for name in ("a/b/c.py", "a/d.py", "e.py"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).touch()
    assert [str(path) for path in (sandbox.files / "a").rglob("*.py")] == ["a/d.py", "a/b/c.py"]
    for pattern in ("", "/etc/*", None):
        with pytest.raises(InvalidOptionError, match="pattern"):
            list(sandbox.files.root.glob(pattern))  # type: ignore[arg-type]


# Changes


def test_directories_are_made_as_pathlib_makes_them(sandbox: Sandbox, workspace: Path) -> None:
    root = sandbox.files.root
    with pytest.raises(FileNotFoundError):
        (root / "a/b").mkdir()
    (root / "a/b").mkdir(parents=True)
    assert (workspace / "a/b").is_dir()
    with pytest.raises(FileExistsError):
        (root / "a/b").mkdir()
    (root / "a/b").mkdir(exist_ok=True)
    (root / "file").write_text("x")
    with pytest.raises(FileExistsError):
        (root / "file").mkdir(exist_ok=True)
    with pytest.raises(NotADirectoryError):
        (root / "file/below").mkdir()


def test_files_and_directories_are_removed_only_as_what_they_are(sandbox: Sandbox, workspace: Path) -> None:
    root = sandbox.files.root
    (root / "dir/sub").mkdir(parents=True)
    (root / "dir/file").write_text("x")
    (workspace / "link").symlink_to("dir")
    with pytest.raises(IsADirectoryError):
        (root / "dir").unlink()
    with pytest.raises(NotADirectoryError):
        (root / "dir/file").rmdir()
    with pytest.raises(NotADirectoryError):
        (root / "link").rmtree()
    with pytest.raises(PathError, match="not empty"):
        (root / "dir").rmdir()
    with pytest.raises(FileNotFoundError):
        (root / "no").unlink()
    (root / "no").unlink(missing_ok=True)
    (root / "link").unlink()
    (root / "dir/sub").rmdir()
    assert names(workspace) == ["dir"]
    (root / "dir").rmtree()
    assert names(workspace) == []
    with pytest.raises(PathError):
        root.rmtree()


def test_a_rename_replaces_a_file_and_gives_the_new_path(sandbox: Sandbox, workspace: Path) -> None:
    (sandbox.files / "a").write_text("1")
    (sandbox.files / "b").write_text("2")
    moved = (sandbox.files / "a").rename("b")
    assert moved == sandbox.files / "b"
    assert moved.read_text() == "1"
    assert moved.rename(sandbox.files / "c").name == "c"
    assert names(workspace) == ["c"]


def test_x14_what_a_command_writes_is_seen_and_the_other_way(sandbox: Sandbox) -> None:
    path = sandbox.files / "dir" / "note.txt"
    path.write_text("naïve\n")
    assert sandbox.exec(["cat", str(path)]).stdout == "naïve\n"
    sandbox.exec("echo more >> dir/note.txt", check=True)
    assert path.read_text().splitlines() == ["naïve", "more"]


def test_it_works_while_the_sandbox_is_stopped_and_ends_with_it(manager: Manager) -> None:
    sandbox = manager.create("other")
    path = sandbox.files / "kept"
    path.write_text("x")
    sandbox.stop()
    assert path.read_text() == "x"
    sandbox.remove()
    for act in (path.exists, path.read_text, lambda: path.open("w")):
        with pytest.raises(NotFoundError) as caught:
            act()
        assert not isinstance(caught.value, FileNotFoundError)  # the sandbox is missing, not a file in it
