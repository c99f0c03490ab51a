"""Archives as the engine makes them, and as nobody should."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import AsyncIterator, Iterable

import pytest

from yaosb_jupyter.errors import ProtocolError
from yaosb_jupyter.guest import records
from yaosb_jupyter.guest.manifest import Stamp
from yaosb_jupyter.tai.runtimes.docker.archivetree import ArchivedTree, times_told
from yaosb_jupyter.tai.runtimes.docker.tarstream import TarReader

SECOND = 10**9
LONG = "n" * 200
NAMES = ["plain", "with space", "non-ascii-é", LONG, "\udcff not UTF-8", f"{LONG}/deep/{LONG}"]


def entry(
    name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, **fields: object
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.mode = kind, len(content), 0o640
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def archive(*entries: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form, errors="surrogateescape") as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


async def pieces(data: bytes, size: int = 700) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def again(path: str) -> AsyncIterator[bytes]:
    yield f"again: {path}".encode()


async def told(data: bytes, there: dict[str, Stamp] | None = None, times: dict[str, int] | None = None) -> list[str]:
    """The records of a tree in short."""
    tree = ArchivedTree(TarReader(pieces(data)), times or {}, again)
    decoder = records.Decoder()
    found = []
    async for piece in tree.packed(there or {}):
        for record in decoder.feed(piece):
            if record.kind == records.MORE:
                found[-1] += bytes(record.content).decode()
            else:
                found.append(f"{SHORT[record.kind]}{record.name}{'=' * (record.kind == records.FILE)}")
    return found


SHORT = {records.ENTER: "+", records.LEAVE: "-", records.FILE: "", records.SKIP: "!", records.END: "end"}
TREE = (
    entry("top", kind=tarfile.DIRTYPE),
    entry("top/a", b"1"),
    entry("top/d", kind=tarfile.DIRTYPE),
    entry("top/d/e", kind=tarfile.DIRTYPE),
    entry("top/d/e/f", b"2"),
    entry("top/link", kind=tarfile.SYMTYPE, linkname="/etc/passwd"),
    entry("top/z", kind=tarfile.LNKTYPE, linkname="top/a"),
)


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
@pytest.mark.parametrize("name", NAMES)
async def test_names_sizes_times_and_contents_are_read(form: int, name: str) -> None:
    content = os.urandom(5000)
    data = archive(entry(name, content, mtime=1_234_567_890), entry("next"), form=form)
    tar = TarReader(pieces(data))
    found = await tar.next_entry()
    assert found is not None
    assert (found.path, found.size, found.mtime, found.mode) == (name, 5000, 1_234_567_890 * SECOND, 0o640)
    assert b"".join([piece async for piece in tar.content()]) == content
    following = await tar.next_entry()
    assert following is not None
    assert (following.path, following.size) == ("next", 0)
    assert await tar.next_entry() is None


async def test_content_that_nobody_reads_is_passed_over() -> None:
    tar = TarReader(pieces(archive(entry("big", bytes(100_000)), entry("next", b"x"))))
    await tar.next_entry()
    found = await tar.next_entry()
    assert found is not None
    assert found.path == "next"


async def test_fractions_of_seconds_are_exact() -> None:
    info, content = entry("file")
    info.pax_headers = {"mtime": "1234567890.123456789"}
    found = await TarReader(pieces(archive((info, content)))).next_entry()
    assert found is not None
    assert found.mtime == 1_234_567_890_123_456_789


async def test_a_tree_becomes_records() -> None:
    assert await told(archive(*TREE)) == ["+", "a=1", "+d", "+e", "f=2", "-", "-", "!link", "z=again: z", "-", "end"]


async def test_a_file_alone_becomes_one() -> None:
    assert await told(archive(entry("top", b"1"))) == ["=1", "end"]
    there = {"": Stamp(1, 0o640, 0)}
    assert await told(archive(entry("top", b"1")), there) == ["!", "end"]


async def test_what_is_there_is_left_out() -> None:
    there = {"a": Stamp(1, 0o640, 0), "d/e/f": Stamp(1, 0o644, 0)}
    assert await told(archive(*TREE[:5]), there) == ["+", "+d", "+e", "f=2", "-", "-", "-", "end"]


async def test_a_time_is_taken_where_it_is_of_the_same_second() -> None:
    data = archive(*TREE[:2])
    assert await told(data, {"a": Stamp(1, 0o640, 5)}, {"a": 5}) == ["+", "-", "end"]
    assert await told(data, {"a": Stamp(1, 0o640, SECOND + 5)}, {"a": SECOND + 5}) == ["+", "a=1", "-", "end"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x" * 1024,
        archive(entry("top", b"x" * 2000))[:1500],
        archive(entry("top/a/b", b"")),
        archive(entry(LONG, b""))[:512] + b"nonsense".ljust(512, b"\0") + bytes(1024),
    ],
    ids=["nothing", "rubbish", "cut short", "a file in no directory", "an extended header that is none"],
)
async def test_what_is_no_archive_of_a_tree_is_told(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="archive"):
        await told(data)


def batch(paths: Iterable[str], lines: Iterable[str]) -> bytes:
    return b"".join(f"{path}\0".encode() for path in paths) + b"\0" + "".join(f"{x}\n" for x in lines).encode() + b"\0"


def test_times_are_read_batch_by_batch() -> None:
    times = ["2009-02-13 23:31:30.123456000 +0000", "1969-12-31 23:59:59.500000000"]
    first = batch(["/w/a", "/w/new\nline"], times)
    vanished = batch(["/w/b", "/w/c"], times[:1])
    assert times_told(first + vanished + batch(["/w"], times[:1]), "/w") == {
        "a": 1_234_567_890_123_456_000,
        "new\nline": -500_000_000,
        "": 1_234_567_890_123_456_000,
    }


@pytest.mark.parametrize(
    "told", [b"", b"\0", b"x", b"a\0\0yesterday\n\0", b"a\0\0\xff\n\0", b"a\0\0" + b"9" * 30 + b"\n\0"]
)
def test_times_that_are_nonsense_are_none(told: bytes) -> None:
    assert times_told(told, "/w") == {}
