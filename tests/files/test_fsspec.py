"""fsspec's own suite over ``sandbox://``, and what it cannot know of."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import fsspec
import fsspec.tests.abstract as suite
import pytest
from fsspec import AbstractFileSystem

from tests.daemon.conftest import Station
from yaosb_jupyter.blocking import entry
from yaosb_jupyter.blocking.entry import manager as process_manager
from yaosb_jupyter.blocking.sandbox import Sandbox
from yaosb_jupyter.errors import InvalidOptionError, PathError


@pytest.fixture
def sandbox(station: Station, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """Of the process's own manager, which is what addresses speak of."""
    monkeypatch.setattr(entry, "_current", None)
    with process_manager() as manager:
        yield manager.create("lab")


class Fixtures(suite.AbstractFixtures):  # type: ignore[misc]
    """What fsspec's suite wants to know of a file system."""

    @pytest.fixture
    def fs(self, sandbox: Sandbox) -> AbstractFileSystem:
        return fsspec.filesystem("sandbox")

    @pytest.fixture
    def fs_path(self, sandbox: Sandbox) -> str:
        return "lab"


class TestCopy(suite.AbstractCopyTests, Fixtures):  # type: ignore[misc]
    pass


class TestGet(suite.AbstractGetTests, Fixtures):  # type: ignore[misc]
    pass


class TestPut(suite.AbstractPutTests, Fixtures):  # type: ignore[misc]
    pass


class TestPipe(suite.AbstractPipeTests, Fixtures):  # type: ignore[misc]
    pass


class TestOpen(suite.AbstractOpenTests, Fixtures):  # type: ignore[misc]
    pass


def test_an_address_is_opened_by_name(sandbox: Sandbox) -> None:
    with fsspec.open("sandbox://lab/dir/file.txt", "w") as file:
        file.write("text")
    assert (sandbox.files / "dir/file.txt").read_text() == "text"
    with fsspec.open((sandbox.files / "dir/file.txt").as_uri()) as file:
        assert file.read() == b"text"
    with fsspec.open("sandbox://lab/z.gz", "wb", compression="gzip") as file:
        file.write(b"packed")
    assert sandbox.exec("gzip -dc < z.gz", check=True).stdout == "packed"
    assert [file.path for file in fsspec.open_files("sandbox://lab/dir/*.txt")] == ["lab/dir/file.txt"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_text_begins_with_the_mark_of_its_encoding(sandbox: Sandbox, encoding: str) -> None:
    with fsspec.open("sandbox://lab/file", "w", encoding=encoding) as file:
        file.write("naïve")
    assert (sandbox.files / "file").read_bytes() == "naïve".encode(encoding)
    with fsspec.open("sandbox://lab/file", encoding=encoding, mode="r") as file:
        assert file.read() == "naïve"


def test_a_file_has_what_users_of_fsspec_ask_of_one(sandbox: Sandbox) -> None:
    fs = fsspec.filesystem("sandbox")
    lines = b"".join(b"line %d\n" % number for number in range(10))
    fs.pipe_file("lab/lines", lines)
    assert fs.read_block("lab/lines", 10, 15, delimiter=b"\n") == b"line 2\nline 3\n"
    with fs.open("lab/lines") as file:
        assert (file.fs, file.path, file.mode, file.size, file.loc) == (fs, "lab/lines", "rb", 70, 0)
        assert (file.readline(), file.loc, file.seekable(), file.closed) == (b"line 0\n", 7, True, False)
    assert file.closed


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # fsspec leaves its own files open
@pytest.mark.parametrize("protocol", ["blockcache", "filecache", "simplecache"])
def test_the_caches_of_fsspec_are_laid_over_it(sandbox: Sandbox, tmp_path: Path, protocol: str) -> None:
    (sandbox.files / "lines").write_text("line\n" * 10)
    for _ in range(2):
        options = {protocol: {"cache_storage": str(tmp_path / "cache")}}
        with fsspec.open(f"{protocol}::sandbox://lab/lines", **options) as file:
            assert file.read() == b"line\n" * 10


def test_x14_nothing_stale_is_shown(sandbox: Sandbox) -> None:
    fs = fsspec.filesystem("sandbox")
    assert fs.ls("lab", detail=False) == []
    assert not fs.exists("lab/file")
    sandbox.exec("echo one > file", check=True)
    assert fs.ls("lab", detail=False) == ["lab/file"]
    assert fs.cat("lab/file") == b"one\n"
    key = fs.ukey("lab/file")
    with fs.open("lab/file") as file:
        assert file.read() == b"one\n"
        sandbox.exec("echo longer > file", check=True)
        assert file.seek(0) == 0
        assert file.read() == b"longer\n"
    assert fs.info("lab/file")["size"] == 7
    assert fs.ukey("lab/file") != key
    sandbox.exec("rm file", check=True)
    assert not fs.exists("lab/file")
    assert fs.find("lab") == []


def test_what_is_there_is_told(sandbox: Sandbox) -> None:
    sandbox.exec(
        "mkdir -p d/e; echo 12 > d/f; ln -s d/f link; ln -s d dirlink; ln -s /etc out; ln -s no gone", check=True
    )
    fs = fsspec.filesystem("sandbox")
    assert [each["name"] for each in fs.ls("")] == ["lab"]
    assert {each["name"]: each["type"] for each in fs.ls("sandbox://lab/")} == {
        "lab/d": "directory",
        "lab/dirlink": "directory",
        "lab/gone": "other",
        "lab/link": "file",
        "lab/out": "other",
    }
    assert fs.size("lab/link") == 3
    assert (fs.isdir("lab"), fs.isdir("lab/d"), fs.isfile("lab/d/f"), fs.isfile("lab/d")) == (True, True, True, False)
    assert fs.glob("lab/d/*") == ["lab/d/e", "lab/d/f"]
    assert fs.du("lab/d") == 3
    assert fs.modified("lab/d/f").timestamp() == pytest.approx((sandbox.files / "d/f").stat().mtime)
    assert [fs.cat_file("lab/d/f", *part) for part in ((1,), (0, 1), (-2, None), (None, -1))] == [
        b"2\n",
        b"1",
        b"2\n",
        b"12",
    ]
    assert pickle.loads(pickle.dumps(fs)).ls("lab/d", detail=False) == ["lab/d/e", "lab/d/f"]


def test_links_that_lead_nowhere_and_special_files_are_left_where_they_are(sandbox: Sandbox, tmp_path: Path) -> None:
    odd = "ln -s /usr/bin/python3 out; ln -s loop loop; ln -s no gone; mkfifo fifo; ln -s d dirlink; ln -s d/f link"
    sandbox.exec(f"mkdir -p top/d; cd top; echo 12 > d/f; {odd}", check=True)
    fs = fsspec.filesystem("sandbox")
    names = ["d/f", "fifo", "gone", "link", "loop", "out"]
    assert fs.find("lab/top") == [f"lab/top/{name}" for name in names]
    assert fs.du("lab/top", total=False).keys() == set(fs.find("lab/top"))
    assert fs.disk_usage("lab/top") >= 6
    for name in ("out", "loop", "gone"):
        path = f"lab/top/{name}"
        assert (fs.info(path)["type"], fs.info(path)["islink"]) == ("other", True)
        assert (fs.exists(path), fs.lexists(path), fs.isfile(path), fs.isdir(path)) == (False, True, False, False)
        assert (fs.exists(f"{path}/x"), fs.isdir(f"{path}/x")) == (False, False)
    fs.get("lab/top", str(tmp_path / "got"), recursive=True)
    got = sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "got").rglob("*"))
    assert got == ["got/d", "got/d/f", "got/link"]
    with pytest.raises(PathError):
        fs.get("lab/top/fifo", str(tmp_path / "fifo"))
    fs.copy("lab/top", "lab/copy", recursive=True)
    assert fs.find("lab/copy") == ["lab/copy/d/f", "lab/copy/link"]
    fs.rm("lab/top", recursive=True)
    assert fs.ls("lab", detail=False) == ["lab/copy"]


def test_links_to_directories_are_not_followed_below(sandbox: Sandbox) -> None:
    sandbox.exec("ln -s . a; ln -s . b; mkdir -p sub/x; echo 12 > sub/f; ln -s sub named", check=True)
    fs = fsspec.filesystem("sandbox")
    assert fs.find("lab") == ["lab/sub/f"]
    assert list(fs.walk("lab")) == [
        ("lab", ["a", "b", "named", "sub"], []),
        ("lab/sub", ["x"], ["f"]),
        ("lab/sub/x", [], []),
    ]
    assert [path for path, _, _ in fs.walk("lab", topdown=False)] == ["lab/sub/x", "lab/sub", "lab"]
    assert [path for path, _, _ in fs.walk("lab", maxdepth=1)] == ["lab"]
    assert fs.glob("lab/**/f") == ["lab/sub/f"]
    assert fs.du("lab") == 3
    assert fs.find("lab/named") == ["lab/named/f"]
    for _, dirs, _ in (walk := fs.walk("lab")):
        dirs.remove("sub")
        assert list(walk) == []


def test_a_walk_does_not_end_early_where_the_sandbox_is_lost(sandbox: Sandbox) -> None:
    sandbox.exec("mkdir -p a b; touch a/1 b/2", check=True)
    fs = fsspec.filesystem("sandbox")
    assert list(fs.walk("lab/no")) == []
    with pytest.raises(FileNotFoundError):
        list(fs.walk("lab/no", on_error="raise"))
    walk = fs.walk("lab")
    assert next(walk) == ("lab", ["a", "b"], [])
    sandbox.remove()
    with pytest.raises(FileNotFoundError, match="no such sandbox"):
        list(walk)


def test_files_are_moved_removed_and_copied_between_sandboxes(sandbox: Sandbox) -> None:
    other = process_manager().create("other")
    fs = fsspec.filesystem("sandbox")
    fs.pipe({"lab/a/one": b"1", "lab/a/b/two": b"2"})
    fs.copy("lab/a", "other/copy", recursive=True)
    assert sorted(fs.find("other")) == ["other/copy/b/two", "other/copy/one"]
    fs.mv("lab/a/one", "other/moved")
    assert (other.files / "moved").read_text() == "1"
    assert not fs.exists("lab/a/one")
    with pytest.raises(IsADirectoryError):
        fs.rm("lab/a")
    fs.rm("lab/a", recursive=True)
    assert fs.ls("lab") == []
    fs.touch("lab/new")
    with pytest.raises(FileExistsError):
        fs.pipe_file("lab/new", b"", mode="create")
    fs.makedirs("lab/x/y")
    with pytest.raises(FileExistsError):
        fs.makedirs("lab/x/y")
    fs.rmdir("lab/x/y")
    other.remove()


def test_errors_are_those_that_users_of_fsspec_expect(sandbox: Sandbox) -> None:
    fs = fsspec.filesystem("sandbox")
    sandbox.exec("ln -s /etc out", check=True)
    for path in ("lab/no", "nobody/file", "nobody"):
        with pytest.raises(FileNotFoundError):
            fs.info(path)
        with pytest.raises(FileNotFoundError):
            fs.open(path)
    for path in ("lab/../../etc/passwd", "lab/out/passwd"):
        with pytest.raises(PathError, match="out of the workspace"):
            fs.open(path)
    with pytest.raises(InvalidOptionError, match="sandbox://ID"):
        fs.open("sandbox://")
    with pytest.raises(InvalidOptionError, match="transactions"), fs.transaction:
        fs.open("lab/file", "wb")


def test_a_failed_get_leaves_nothing_half(sandbox: Sandbox, tmp_path: Path) -> None:
    fs = fsspec.filesystem("sandbox")
    (tmp_path / "file").write_text("old")
    with pytest.raises(FileNotFoundError):
        fs.get_file("lab/no", str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "old"


def test_without_fsspec_the_way_out_is_told() -> None:
    code = "import sys; sys.modules['fsspec'] = None\nimport yaosb_jupyter.filesystem"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install 'yaosb-jupyter[fsspec]'" in done.stderr
