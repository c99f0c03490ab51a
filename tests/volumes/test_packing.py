"""What the stream of a tree begins with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from yaosb_jupyter.guest import packing, records
from yaosb_jupyter.guest.confined import READ
from yaosb_jupyter.guest.packing import READ_AHEAD, Packer
from yaosb_jupyter.guest.walk import Place, walk

SMALL, LARGE = 1000, READ_AHEAD // 2 + 1


@pytest.mark.parametrize(("size", "walks"), [(SMALL, 1), (LARGE, 2)])
def test_the_total_comes_first_and_a_small_tree_is_walked_once(
    size: int, walks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "below").mkdir()
    for place in ("a", "b", "below/c"):
        (tmp_path / place).write_bytes(os.urandom(size))
    walked = 0

    def counted(top: int, stats: bool) -> Iterator[Place]:
        nonlocal walked
        walked += 1
        return walk(top, stats)

    monkeypatch.setattr(packing, "walk", counted)
    packer = Packer(lambda: os.open(tmp_path, READ), {})
    decoder = records.Decoder()
    told = [
        (record.kind, record.name, bytes(record.content)) for piece in packer.steps() for record in decoder.feed(piece)
    ]
    assert walked == walks
    assert told[0] == (records.TOTAL, "", records.encode_total(3 * size)[-8:])
    assert [name for kind, name, _ in told if kind in (records.FILE, records.ENTER)] == ["", "a", "b", "below", "c"]
    content = b"".join(content for kind, _, content in told if kind in (records.FILE, records.MORE))
    assert content == b"".join((tmp_path / place).read_bytes() for place in ("a", "b", "below/c"))
    assert packer.total == packer.done == 3 * size
