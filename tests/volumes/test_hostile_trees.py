"""What a sandbox may send instead of a tree, and what of it reaches this machine: nothing outside of the target."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yaosb_jupyter.errors import PathError, SandboxError
from yaosb_jupyter.guest import records, staging, unpacking
from yaosb_jupyter.guest.records import END, ENTER, FILE, LEAVE, MORE, SKIP, TOTAL, encode
from yaosb_jupyter.tai.volumes import trees
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.tai.volumes.local import LocalVolume

SECRET = b"of the host"
TOP = encode(ENTER, "")
WHOLE = encode(LEAVE) + encode(END)


class SendingVolume(LocalVolume):
    """A sandbox that sends what it likes."""

    opened = Volume.opened

    def __init__(self, directory: Path, sent: bytes) -> None:
        super().__init__(directory, sandbox="box")
        self._sent = sent

    async def pack(self, source: str, there: Any = None) -> AsyncIterator[bytes]:
        for start in range(0, len(self._sent), 1000):
            yield self._sent[start : start + 1000]

    async def pull(self, source: str, target: Path, progress: Any = None, *, checksum: bool = False) -> Any:
        return await super(LocalVolume, self).pull(source, target, progress, checksum=checksum)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory of the user, with things that are none of the sandbox's business."""
    path = tmp_path / "home"
    (path / "other").mkdir(parents=True)
    (path / "other/secret").write_bytes(SECRET)
    return path


@pytest.fixture(autouse=True)
def nothing_outside_is_touched(home: Path, tmp_path: Path) -> Iterator[None]:
    yield
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert {path.name for path in home.iterdir()} <= {"other", "target"}
    assert [path.name for path in (home / "other").iterdir()] == ["secret"]
    assert (home / "other/secret").read_bytes() == SECRET


async def pull(home: Path, *sent: bytes) -> Path:
    await SendingVolume(home, b"".join(sent)).pull("anything", home / "target")
    return home / "target"


def raw(kind: int, name: bytes, content: bytes = b"", mode: int = 0o644) -> bytes:
    """A record that our own encoder would not make."""
    return (
        kind.to_bytes(1, "big")
        + mode.to_bytes(2, "big")
        + bytes(8)
        + len(name).to_bytes(2, "big")
        + len(content).to_bytes(4, "big")
        + name
        + content
    )


IMPOSSIBLE = [b"..", b".", b"../evil", b"/etc/evil", b"a/b", b"/", b"other/../../evil", b"x\0y", b"x" * 256]


@pytest.mark.parametrize("kind", [FILE, ENTER, SKIP])
@pytest.mark.parametrize("name", IMPOSSIBLE)
async def test_x11_an_impossible_name_is_refused(name: bytes, kind: int, home: Path) -> None:
    with pytest.raises(PathError, match="no tree of files"):
        await pull(home, TOP, raw(kind, name, b"planted"), encode(LEAVE), WHOLE)
    with pytest.raises(PathError, match="no tree of files"):
        await pull(home, raw(kind, name, b"planted"), encode(END))
    assert not list((home / "target").glob("**/*"))


async def test_x11_a_link_of_the_user_is_not_followed(home: Path) -> None:
    (home / "target").mkdir()
    (home / "target/link").symlink_to(home / "other")
    (home / "target/secret").symlink_to(home / "other/secret")
    with pytest.raises(PathError):
        await pull(home, TOP, encode(ENTER, "link"), encode(FILE, "secret", 0o644, b"planted"), encode(LEAVE), WHOLE)
    await pull(home, TOP, encode(FILE, "secret", 0o644, b"planted"), WHOLE)
    assert (home / "target/secret").read_bytes() == b"planted"
    assert not (home / "target/secret").is_symlink()


@pytest.mark.parametrize("kind", [0, 8, 9, 255])
async def test_x11_there_are_no_records_of_links_and_devices(kind: int, home: Path) -> None:
    with pytest.raises(PathError, match="no tree of files"):
        await pull(home, TOP, raw(kind, b"name", b"/etc/passwd"), WHOLE)
    assert list((home / "target").iterdir()) == []


CLASHES = {
    "file, file": (encode(FILE, "a"), encode(FILE, "a")),
    "file, directory": (encode(FILE, "a"), encode(ENTER, "a"), encode(LEAVE)),
    "directory, file": (encode(ENTER, "a"), encode(LEAVE), encode(FILE, "a")),
    "directory, directory": (encode(ENTER, "a"), encode(LEAVE), encode(ENTER, "a"), encode(LEAVE)),
}


@pytest.fixture(params=["there already", "new"])
def target(request: pytest.FixtureRequest, home: Path) -> None:
    if request.param == "there already":
        (home / "target").mkdir()


@pytest.mark.usefixtures("target")
@pytest.mark.parametrize("clash", CLASHES)
async def test_x11_two_of_one_name_are_refused(clash: str, home: Path) -> None:
    with pytest.raises(PathError):
        await pull(home, TOP, *CLASHES[clash], WHOLE)


@pytest.mark.usefixtures("target")
@pytest.mark.parametrize("clash", CLASHES)
async def test_x11_two_that_differ_in_case_only_are_refused_where_case_means_nothing(
    clash: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No such file system can be had on every machine that runs this: the calls are made to take ``A`` for ``a``."""
    for module in (unpacking, staging, trees):
        monkeypatch.setattr(module, "os", CaselessOs())
    first, *rest = CLASHES[clash]
    with pytest.raises(PathError):
        await pull(home, TOP, first, *(record.replace(b"a", b"A") for record in rest), WHOLE)


class CaselessOs:
    """`os`, its calls with a directory and a name taking a name that differs in case only for the one that is there."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, name: str, flags: int, *mode: int, dir_fd: int | None = None) -> int:
        return os.open(name if dir_fd is None else _there(name, dir_fd), flags, *mode, dir_fd=dir_fd)

    def mkdir(self, name: str, mode: int, *, dir_fd: int) -> None:
        os.mkdir(_there(name, dir_fd), mode, dir_fd=dir_fd)

    def lstat(self, name: str, *, dir_fd: int) -> os.stat_result:
        return os.lstat(_there(name, dir_fd), dir_fd=dir_fd)


def _there(name: str, directory: int) -> str:
    return next((each for each in os.listdir(directory) if each.lower() == name.lower()), name)


BROKEN = {
    "nothing": b"",
    "no end": TOP + encode(LEAVE),
    "an end inside": TOP + encode(END),
    "no top": encode(TOTAL, content=bytes(8)) + encode(END),
    "two tops": TOP + encode(LEAVE) + TOP + encode(LEAVE) + encode(END),
    "a file after the top": encode(FILE, "") + encode(FILE, "") + encode(END),
    "a top inside": TOP + TOP + encode(LEAVE) + WHOLE,
    "a file without a name": TOP + encode(FILE, "") + WHOLE,
    "a name for the top": encode(ENTER, "name") + WHOLE,
    "left too often": TOP + encode(LEAVE) + encode(LEAVE) + encode(END),
    "more of nothing": TOP + encode(MORE, content=b"x") + WHOLE,
    "more of a directory": TOP + encode(ENTER, "a") + encode(MORE, content=b"x") + encode(LEAVE) + WHOLE,
    "something after the end": TOP + WHOLE + encode(FILE, "late"),
    "a total of no number": TOP + encode(TOTAL, content=b"x") + WHOLE,
    "an endless record": TOP + (b"\1" + bytes(2) + b"\0\4" + b"\xff" * 4) + b"name" + b"x" * 5000,
    "no records": b"x" * 5000,
}


@pytest.mark.parametrize("what", BROKEN)
async def test_what_is_no_tree_is_refused(what: str, home: Path) -> None:
    with pytest.raises(PathError, match="no tree of files"):
        await pull(home, BROKEN[what])
    assert not (home / "target/late").exists()


async def test_x10_a_file_whose_end_did_not_come_is_not_seen(home: Path) -> None:
    with pytest.raises(PathError):
        await pull(home, TOP, encode(FILE, "whole", content=b"w"), encode(FILE, "half", content=b"h"))
    assert [path.name for path in (home / "target").iterdir()] == ["whole"]


async def test_no_mode_makes_it_another_users(home: Path) -> None:
    target = await pull(home, raw(ENTER, b"", mode=0o7777), raw(FILE, b"tool", b"x", mode=0o7755), WHOLE)
    assert stat.S_IMODE((target / "tool").stat().st_mode) == 0o755
    assert not stat.S_IMODE(target.stat().st_mode) & 0o7000


async def test_a_directory_that_nobody_may_enter_can_still_be_filled_and_removed(home: Path) -> None:
    target = await pull(home, TOP, encode(ENTER, "shut", 0), encode(FILE, "in", 0o644), encode(LEAVE), WHOLE)
    assert stat.S_IMODE((target / "shut").stat().st_mode) == 0o700


async def test_a_tree_that_is_too_deep_is_refused(home: Path) -> None:
    deep = [encode(ENTER, "d") for _ in range(records.MAX_DEPTH)]
    with pytest.raises(PathError, match="too long"):
        await pull(home, TOP, *deep, *(encode(LEAVE) for _ in deep), WHOLE)


async def test_what_is_told_to_be_left_out_is_not_kept_without_end(home: Path) -> None:
    sent = TOP + b"".join(encode(SKIP, f"{number}") for number in range(5000)) + WHOLE
    copied = await SendingVolume(home, sent).pull("", home / "target")
    assert len(copied.skipped) == 1000


anything = st.builds(
    raw,
    st.integers(0, 9),
    st.sampled_from([b"", b"a", b"A", b"b", b"..", b"other", b"link", b"../other/secret", b"\xff"]),
    st.binary(max_size=10),
    st.integers(0, 0xFFFF),
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=st.lists(st.one_of(anything, st.sampled_from([TOP, encode(LEAVE), encode(END)])), max_size=30))
async def test_x11_whatever_is_sent_stays_inside(sent: list[bytes], home: Path) -> None:
    (home / "target").mkdir(exist_ok=True)
    if not (home / "target/link").exists():
        (home / "target/link").symlink_to(home / "other")
    try:
        await pull(home, TOP, *sent)
    except SandboxError:
        pass
    else:
        assert any(record.startswith(bytes([END])) for record in sent)
    assert [path.name for path in (home / "other").iterdir()] == ["secret"]
    assert (home / "other/secret").read_bytes() == SECRET
    assert not list((home / "target").glob("**/.yaosb-*"))
