"""What files hold: all of it, parts of it, and never half of it."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.conftest import DIRECT
from tests.contract.workspaces import MIB, Rig, descriptors_into, names, read, write
from yaosb_jupyter.tai.volumes.base import Volume


@pytest.mark.parametrize("size", [0, 1, MIB - 1, MIB, MIB + 1, 3 * MIB])
async def test_content_comes_back_whatever_its_size(size: int, volume: Volume) -> None:
    data = os.urandom(size)
    assert (await write(volume, "file", data)).size == size
    assert await read(volume, "file") == data


@pytest.mark.parametrize(("offset", "size"), [(0, 10), (5, 10), (95, 10), (100, 10), (200, 10), (30, None), (0, 0)])
async def test_a_part_of_a_file_is_read(offset: int, size: int | None, volume: Volume) -> None:
    data = bytes(range(100))
    await write(volume, "file", data)
    expected = data[offset:] if size is None else data[offset : offset + size]
    found = [piece async for piece in volume.read("file", offset=offset, size=size)]
    assert b"".join(found) == expected


async def test_x10_a_file_is_whole_from_the_moment_it_is_seen(volume: Volume, hostile: Path) -> None:
    await write(volume, "file", b"old")
    seen: list[bytes] = []

    async def slowly() -> AsyncIterator[bytes]:
        for piece in (b"new ", b"and ", b"whole"):
            yield piece
            seen.append(await asyncio.to_thread((hostile / "file").read_bytes))

    await volume.write("file", slowly())
    assert seen == [b"old"] * 3
    assert (hostile / "file").read_bytes() == b"new and whole"


async def test_x10_a_failed_write_leaves_the_old_file_and_nothing_else(volume: Volume, hostile: Path) -> None:
    await write(volume, "file", b"old")

    async def breaking() -> AsyncIterator[bytes]:
        yield b"x" * MIB
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        await volume.write("file", breaking())
    assert names(hostile) == ["file"]
    assert await read(volume, "file") == b"old"


async def test_x10_a_cancelled_write_leaves_the_old_file_and_nothing_else(
    rig: Rig, volume: Volume, hostile: Path
) -> None:
    await write(volume, "file", b"old")

    async def long() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b"x" * MIB

    for after in (0.0, 0.001, 0.003):
        writing = asyncio.ensure_future(volume.write("file", long()))
        await asyncio.sleep(after)
        writing.cancel()
        await asyncio.wait([writing])
        assert writing.cancelled()
        assert names(hostile) == ["file"]
    assert await read(volume, "file") == b"old"
    assert not descriptors_into(hostile, rig.pids)


async def test_a_cancelled_read_lets_go(rig: Rig, volume: Volume, hostile: Path) -> None:
    await write(volume, "file", b"x" * (4 * MIB))
    for after in (0.0, 0.0005, 0.002):
        reading = asyncio.ensure_future(read(volume, "file"))
        await asyncio.sleep(after)
        reading.cancel()
        await asyncio.wait([reading])
    left = volume.read("file")
    await anext(left)
    await left.aclose()  # type: ignore[attr-defined]
    assert not descriptors_into(hostile, rig.pids)


async def test_x10_a_big_file_goes_through_in_pieces(rig: Rig, volume: Volume) -> None:
    sent, received, biggest = hashlib.sha256(), hashlib.sha256(), 0

    async def source() -> AsyncIterator[bytes]:
        for number in range(64):
            piece = number.to_bytes(4, "big") * (MIB // 4)
            sent.update(piece)
            yield piece

    before = _peaks(rig.pids)
    assert (await volume.write("big", source())).size == 64 * MIB
    async for piece in volume.read("big"):
        biggest = max(biggest, len(piece))
        received.update(piece)
    assert received.digest() == sent.digest()
    assert biggest <= MIB
    assert all(after - peak < 24 * MIB for peak, after in zip(before, _peaks(rig.pids), strict=True))


def _peaks(pids: tuple[int, ...]) -> list[int]:
    return [_peak(pid) for pid in pids]


def _peak(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel tells no peak")


async def test_writers_at_once_leave_one_whole_file(volume: Volume, hostile: Path) -> None:
    contents = [bytes([number]) * (2 * MIB) for number in range(8)]
    await asyncio.gather(*(write(volume, "deep/er/file", data) for data in contents))
    assert await read(volume, "deep/er/file") in contents
    assert names(hostile / "deep/er") == ["file"]


@pytest.mark.parametrize("rig", [*DIRECT, "daemon"], indirect=True)  # an engine's archive breaks off, which is told
async def test_a_file_that_shrinks_while_it_is_read_ends(volume: Volume, hostile: Path) -> None:
    await write(volume, "file", b"x" * (8 * MIB))
    total = 0
    async for piece in volume.read("file"):
        total += len(piece)
        os.truncate(hostile / "file", MIB)
    assert MIB <= total < 4 * MIB, "more than was under way"


async def test_a_file_that_grows_for_ever_is_read_as_it_was(volume: Volume, hostile: Path) -> None:
    await write(volume, "file", b"x" * (2 * MIB))
    total = 0
    async for piece in volume.read("file"):
        total += len(piece)
        with (hostile / "file").open("ab") as file:
            file.write(b"y" * (2 * MIB))
    assert total == 2 * MIB
