"""The confined open: both ways give the same answers, and the second stands in for the first."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from yaosb_jupyter.guest import beneath
from yaosb_jupyter.guest.beneath import open_beneath, openat2_beneath, walk_beneath

PATHS = {
    "file": b"file",
    "dir/file": b"below",
    "dir/../file": b"file",
    "./dir/./file": b"below",
    "dir/link/file": b"file",
    "dir/link/dir/link/dir/file": b"below",
    "chain": b"below",
    "nothing": errno.ENOENT,
    "nothing/..": errno.ENOENT,
    "file/below": errno.ENOTDIR,
    "..": errno.EXDEV,
    "dir/../../root/file": errno.EXDEV,
    "out": errno.EXDEV,
    "up": errno.EXDEV,
    "loop": errno.ELOOP,
    "dangling": errno.ENOENT,
}


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    top = tmp_path / "root"
    (top / "dir").mkdir(parents=True)
    (top / "file").write_bytes(b"file")
    (top / "dir/file").write_bytes(b"below")
    for name, target in {
        "dir/link": "..",
        "chain": "dir/again",
        "dir/again": "link/dir/file",
        "out": "/etc/passwd",
        "up": "dir/../../root/file",
        "loop": "dir/loop",
        "dir/loop": "../loop",
        "dangling": "dir/nothing",
        "inside": "/workspace/dir/file",
    }.items():
        (top / name).symlink_to(target)
    fd = os.open(top, os.O_RDONLY)
    yield fd
    os.close(fd)


def answer(opener: object, root: int, path: str) -> bytes | int | None:
    before = _descriptors()
    try:
        fd = opener(root, path.split("/"), os.O_RDONLY)  # type: ignore[operator]
    except OSError as error:
        assert _descriptors() == before
        return error.errno
    with os.fdopen(fd, "rb") as file:
        return file.read()


def openat2_in_the_end(root: int, names: Sequence[str], flags: int) -> int:
    """Anybody's renames on this machine make the kernel say "try again" to a path with ``..``."""
    while True:
        try:
            return openat2_beneath(root, names, flags)
        except BlockingIOError:
            pass


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("opener", [openat2_in_the_end, walk_beneath, open_beneath])
def test_both_ways_give_the_same_answer(opener: object, path: str, root: int) -> None:
    assert answer(opener, root, path) == PATHS[path]


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EPERM, errno.EAGAIN, errno.EXDEV])
def test_where_the_kernel_cannot_say_the_path_is_walked(code: int, root: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(beneath, "openat2_beneath", refuse)
    assert answer(open_beneath, root, "dir/link/file") == b"file"
    assert answer(open_beneath, root, "out") == errno.EXDEV


def test_another_system_has_no_openat2(root: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beneath.sys, "platform", "darwin")
    assert answer(openat2_beneath, root, "file") == errno.ENOSYS
    assert answer(open_beneath, root, "file") == b"file"


def test_an_absolute_link_to_a_mount_is_inside(root: int) -> None:
    fd = open_beneath(root, ["inside"], os.O_RDONLY, ["/workspace"])
    with os.fdopen(fd, "rb") as file:
        assert file.read() == b"below"
    with pytest.raises(OSError, match="Invalid cross-device link"):
        open_beneath(root, ["inside"], os.O_RDONLY, ["/elsewhere"])


@pytest.mark.parametrize("opener", [walk_beneath, open_beneath])
def test_the_directory_itself(opener: object, root: int) -> None:
    fd = opener(root, [], os.O_RDONLY | os.O_DIRECTORY)  # type: ignore[operator]
    assert os.path.sameopenfile(fd, root)
    os.close(fd)
