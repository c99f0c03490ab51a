"""Open files of a sandbox: the standard library's, over what is streamed."""

from __future__ import annotations

import csv
import io
import os
import pickle
import threading
import zipfile
from pathlib import Path

import pytest

from tests.contract.workspaces import names
from tests.daemon.conftest import Station, wait_until
from yaosb_jupyter.blocking.manager import Manager
from yaosb_jupyter.blocking.sandbox import Sandbox
from yaosb_jupyter.core.files import reading
from yaosb_jupyter.errors import InvalidOptionError, NotFoundError, PathError, SandboxError

MIB = 2**20


def test_text_is_read_and_written_as_by_open(sandbox: Sandbox, tmp_path: Path) -> None:
    for text in ({}, {"encoding": "utf-16"}, {"newline": "\r\n"}, {"encoding": "ascii", "errors": "replace"}):
        path, here = sandbox.files / "file", tmp_path / "file"
        with path.open("w", **text) as file, here.open("w", **{"encoding": "utf-8", **text}) as real:
            for each in (file, real):
                assert each.write("naïve\r\n") == 7
                each.writelines(["two\n", "three"])
        assert path.read_bytes() == here.read_bytes()
        with path.open(**text) as file, here.open(**{"encoding": "utf-8", **text}) as real:
            assert (file.readline(), list(file), file.read()) == (real.readline(), list(real), real.read())
            assert file.seek(0) == real.seek(0)
            assert file.read(3) == real.read(3)
    assert path.write_text("ä\n", encoding="latin-1", newline="\r\n") == 2
    assert path.read_bytes() == b"\xe4\r\n"
    assert path.read_text("latin-1") == "ä\n"
    assert path.read_text("latin-1", newline="") == "ä\r\n"
    with pytest.raises(UnicodeDecodeError):
        path.read_text()


def test_reading_goes_anywhere(sandbox: Sandbox) -> None:
    data = os.urandom(3 * MIB + 7)
    path = sandbox.files / "file"
    path.write_bytes(data)
    with path.open("rb") as file:
        assert (file.readable(), file.seekable(), file.writable(), file.name, file.mode) == (
            True,
            True,
            False,
            "file",
            "rb",
        )
        assert file.read(10) == data[:10]
        for place in (2 * MIB + 1, 5, len(data) - 3, MIB):
            assert file.seek(place) == file.tell() == place
            assert file.read(100_000) == data[place:][:100_000]
        assert file.seek(-9, os.SEEK_END) == len(data) - 9
        assert file.read() == data[-9:]
        assert file.read() == b""
        assert file.seek(4 * MIB) == 4 * MIB
        assert file.read(1) == b""
        file.seek(2)
        assert file.seek(3, os.SEEK_CUR) == 5
        assert file.read() == data[5:]
        with pytest.raises(io.UnsupportedOperation):
            file.write(b"x")  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="closed"):
        file.read()


def test_libraries_take_it_for_a_file(sandbox: Sandbox) -> None:
    path = sandbox.files / "file"
    with path.open("wb") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", b"1" * MIB)
        archive.writestr("b", b"2")
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        assert archive.read("b") == b"2"
    with path.open("wb") as file:
        pickle.dump({"x": [1, 2]}, file)
    with path.open("rb") as file:
        assert pickle.load(file) == {"x": [1, 2]}
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["a", "b"], ["1", "two\nlines"]])
    with path.open(newline="") as file:
        assert list(csv.reader(file)) == [["a", "b"], ["1", "two\nlines"]]


def test_a_file_is_seen_when_it_is_closed(sandbox: Sandbox, workspace: Path) -> None:
    path = sandbox.files / "deep" / "file"
    with path.open("wb") as file:
        file.write(b"x" * 3 * MIB)
        file.flush()
        assert file.tell() == 3 * MIB
        assert not path.exists()
    assert (workspace / "deep/file").stat().st_size == 3 * MIB
    (workspace / "deep/file").chmod(0o751)
    with path.open("w") as text:
        text.write("new")
        assert path.stat().size == 3 * MIB
    assert path.read_text() == "new"
    assert path.stat().mode & 0o777 == 0o751


def test_an_exception_leaves_the_old_file(sandbox: Sandbox, workspace: Path) -> None:
    path = sandbox.files / "file"
    path.write_text("old")
    for mode in ("w", "wb"):
        with pytest.raises(LookupError), path.open(mode) as file:  # type: ignore[call-overload]
            file.write("n" * 3 * MIB if mode == "w" else b"n" * 3 * MIB)
            raise LookupError
        assert file.closed
        assert path.read_text() == "old"
        assert names(workspace) == ["file"]


def test_a_file_that_nobody_closes_leaves_the_old_one(sandbox: Sandbox, workspace: Path) -> None:
    path = sandbox.files / "file"
    path.write_text("old")
    for mode, data in {"w": "n" * 3 * MIB, "wb": b"n" * 3 * MIB}.items():
        with pytest.warns(ResourceWarning, match="file"):
            path.open(mode).write(data)  # type: ignore[call-overload]
        wait_until(lambda: names(workspace) == ["file"])
        assert path.read_text() == "old"


def test_what_is_added_comes_after_what_was_there(sandbox: Sandbox) -> None:
    path = sandbox.files / "file"
    for line in ("one\n", "two\n"):
        with path.open("a") as file:
            file.write(line)
    assert path.read_text() == "one\ntwo\n"
    path.write_bytes(b"x" * 3 * MIB)
    with path.open("ab") as file:
        file.write(b"y")
    assert path.read_bytes() == b"x" * 3 * MIB + b"y"


def test_what_cannot_be_opened_is_told_at_once(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / "dir").mkdir()
    (workspace / "there").touch()
    os.mkfifo(workspace / "fifo")
    root = sandbox.files.root
    for mode in ("r", "rb", "w", "ab"):
        with pytest.raises(IsADirectoryError):
            (root / "dir").open(mode)  # type: ignore[call-overload]
        with pytest.raises(PathError, match="neither a file nor a directory"):
            (root / "fifo").open(mode)  # type: ignore[call-overload]
    with pytest.raises(FileNotFoundError):
        (root / "no").open()
    with pytest.raises(FileExistsError):
        (root / "there").open("x")
    with (root / "new").open("x") as file:
        file.write("x")
    for mode in ("r+", "rw", "q", "", "rbt", "rr", 3):
        with pytest.raises(InvalidOptionError, match="mode"):
            (root / "there").open(mode)  # type: ignore[call-overload]
    with pytest.raises(InvalidOptionError, match="text"):
        (root / "there").open("rb", encoding="utf-8")  # type: ignore[call-overload]
    assert names(workspace) == ["dir", "fifo", "new", "there"]


def test_a_file_that_cannot_be_written_is_told_and_leaves_nothing(sandbox: Sandbox, workspace: Path) -> None:
    path = sandbox.files / "dir" / "file"
    with pytest.raises(SandboxError), path.open("wb") as file:
        wait_until((workspace / "dir").exists)  # it is made as the file is begun
        (workspace / "dir").rmdir()
        (workspace / "dir").touch()
        for _ in range(40):
            file.write(b"x" * MIB)
    assert names(workspace) == ["dir"]


def test_one_file_is_read_though_it_is_replaced_meanwhile(sandbox: Sandbox) -> None:
    path = sandbox.files / "file"
    path.write_bytes(b"a" * 9 * MIB)
    with path.open("rb") as file:
        first = file.read(MIB)
        path.write_bytes(b"b" * 9 * MIB)
        assert first + file.read() == b"a" * 9 * MIB
        file.seek(0)
        assert file.read(3) == b"bbb"  # X14: after a jump it is what is there


def test_m14_a_file_that_is_left_open_is_let_go(
    sandbox: Sandbox, workspace: Path, station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_LET_GO", 0.1)
    path = sandbox.files / "file"
    path.write_bytes(os.urandom(9 * MIB))
    held = workspace / "file"

    def is_held() -> bool:
        links = Path(f"/proc/{station.pid}/fd").iterdir()
        return any(os.path.realpath(link) == str(held) for link in links if link.is_symlink())

    with path.open("rb") as file:
        first = file.read(3 * MIB)
        wait_until(lambda: not is_held())
        assert first + file.read() == held.read_bytes()


def test_x10_a_big_file_is_streamed_both_ways(sandbox: Sandbox, station: Station) -> None:
    piece = os.urandom(MIB)
    before = _peak(os.getpid()), _peak(station.pid)
    with (sandbox.files / "big").open("wb") as file:
        for _ in range(256):
            file.write(piece)
    with (sandbox.files / "big").open("rb") as file:
        assert all(file.read(MIB) == piece for _ in range(256))
        assert file.read() == b""
    assert _peak(os.getpid()) - before[0] < 64 * MIB
    assert _peak(station.pid) - before[1] < 64 * MIB


def _peak(pid: int | None) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel tells no peak")


def test_a_file_is_used_from_several_threads(sandbox: Sandbox) -> None:
    path = sandbox.files / "file"
    path.write_bytes(bytes(range(256)) * 40_000)
    found: list[bytes] = []

    def read(number: int) -> None:
        with path.open("rb") as file:
            file.seek(number * MIB)
            found.append(file.read(256))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [bytes(range(256))] * 8


def test_a_file_whose_sandbox_was_removed_says_so(manager: Manager) -> None:
    sandbox = manager.create("other")
    file = (sandbox.files / "late").open("w")
    file.write("x")
    sandbox.remove()
    with pytest.raises(NotFoundError, match="sandbox") as caught:
        file.close()
    assert not isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_text_begins_with_its_encodings_mark_whoever_makes_it_text(sandbox: Sandbox, encoding: str) -> None:
    path = sandbox.files / "file"
    with path.open("wb") as binary, io.TextIOWrapper(binary, encoding=encoding) as text:
        text.write("one\n")
        text.write("two\n")
    assert path.read_bytes() == "one\ntwo\n".encode(encoding)
    with path.open("a", encoding=encoding) as text:
        text.write("three")
    assert path.read_text(encoding=encoding) == "one\ntwo\nthree"
