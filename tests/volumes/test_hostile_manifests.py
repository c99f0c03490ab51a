"""What a sandbox may tell of its files, and what that does to copies: nothing beyond what it asked for itself."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path

import pytest

from tests.contract.workspaces import names
from yaosb_jupyter.errors import PathError
from yaosb_jupyter.guest import manifest, records
from yaosb_jupyter.guest.manifest import Stamp, encode_stamp, stamp_of
from yaosb_jupyter.guest.records import END, ENTER, FILE, LEAVE, MORE, STAMP, encode
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.tai.volumes.comparison import Comparison
from yaosb_jupyter.tai.volumes.local import LocalVolume

TOP = encode(ENTER)
LIE = Stamp(7, 0o644, 0)


class LyingVolume(LocalVolume):
    """A sandbox that tells what it likes of its files. ``asked`` is what it is told in turn."""

    push = Volume.push
    pull = Volume.pull

    def __init__(self, directory: Path, told: bytes) -> None:
        super().__init__(directory, sandbox="box")
        self._told = told
        self.asked = b""

    async def manifest(self, source: str, *, checksum: bool = False) -> AsyncIterator[bytes]:
        for start in range(0, len(self._told), 1000):
            yield self._told[start : start + 1000]

    async def pack(self, source: str, there: AsyncIterable[bytes] | None = None) -> AsyncIterator[bytes]:
        if there is not None:
            self.asked = b"".join([piece async for piece in there])
        async for piece in super().pack(source):
            yield piece


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A directory of the user's, with a secret beside it."""
    path = tmp_path / "home/here"
    path.mkdir(parents=True)
    (path.parent / "secret").write_bytes(b"of the host")
    return path


BROKEN = {
    "no records": b"x" * 5000,
    "a path out": TOP + encode_stamp("../secret", LIE),
    "a name that is none": TOP + encode_stamp("..", LIE),
    "a directory that is none": TOP + encode(ENTER, ".."),
    "a stamp without a name": TOP + encode_stamp("", LIE),
    "left too often": TOP + encode(LEAVE) + encode(LEAVE),
    "a short stamp": TOP + encode(STAMP, "file", content=b"x"),
    "a long stamp": TOP + encode(STAMP, "file", content=b"x" * 41),
    "content": TOP + encode(FILE, "file", content=b"x"),
    "more content": TOP + encode(MORE, content=b"x"),
    "an end": TOP + encode(END),
    "too deep": TOP + encode(ENTER, "d") * records.MAX_DEPTH,
}


@pytest.mark.parametrize("what", BROKEN)
async def test_x11_what_is_no_manifest_is_refused(what: str, workspace: Path, here: Path) -> None:
    volume = LyingVolume(workspace, BROKEN[what])
    (workspace / "tree").mkdir()
    for copy in (volume.push(here, "copy"), volume.pull("tree", here)):
        with pytest.raises(PathError):
            await copy
    assert names(workspace) == ["tree"]
    assert names(here) == []


async def test_a_manifest_without_end_is_not_kept(monkeypatch: pytest.MonkeyPatch, workspace: Path, here: Path) -> None:
    (here / "file").write_bytes(b"content")
    many = b"".join(encode_stamp(f"name-{number}", LIE) for number in range(3000))
    for limit in ("MOST_FILES", "MOST_TEXT"):
        with monkeypatch.context() as patch:
            patch.setattr(manifest, limit, 1000)
            volume = LyingVolume(workspace, TOP + many + encode_stamp("file", stamp_of((here / "file").stat())))
            assert (await volume.push(here, f"copy-{limit}")).files == 1, "what lies beyond is sent"


async def test_who_lies_about_its_files_keeps_them_and_no_more(workspace: Path, here: Path) -> None:
    (here / "file").write_bytes(b"content")
    (workspace / "copy").mkdir()
    (workspace / "copy/file").write_bytes(b"of its own")
    told = TOP + encode_stamp("file", stamp_of((here / "file").stat())) + encode(LEAVE)
    copied = await LyingVolume(workspace, told).push(here, "copy")
    assert (copied.files, copied.unchanged) == (0, 1)
    assert (workspace / "copy/file").read_bytes() == b"of its own"
    assert (here / "file").read_bytes() == b"content"


async def test_it_learns_nothing_of_files_that_it_cannot_name(workspace: Path, here: Path) -> None:
    (here / "known").write_bytes(b"k")
    (here / "private").write_bytes(b"p")
    (here / "private-too").write_bytes(b"p")
    (here / "link").symlink_to(here.parent / "secret")
    (here / "sub").mkdir()
    (here / "sub/private").write_bytes(b"p")
    secret = encode_stamp("link", stamp_of((here.parent / "secret").stat()))
    told = TOP + encode_stamp("known", stamp_of((here / "known").stat())) + encode_stamp("private", LIE) + secret
    (workspace / "tree").mkdir()
    volume = LyingVolume(workspace, told + encode(ENTER, "nothing") + encode(LEAVE) + encode(LEAVE))
    copied = await volume.pull("tree", here)
    assert copied.unchanged == 1
    decoder = records.Decoder()
    assert [record.name for record in decoder.feed(volume.asked)] == ["", "known", "nothing", "", ""]


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_no_descriptor_is_left_open(here: Path) -> None:
    (here / "sub").mkdir()
    before = descriptors()
    comparison = Comparison(here)
    b"".join(comparison.feed(TOP + encode(ENTER, "sub") + encode(ENTER, "missing")))
    assert descriptors() == before + 2
    comparison.close()
    assert descriptors() == before
