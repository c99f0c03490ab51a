"""Much output comes by the pipe itself: whole, in order, held up by its reader, and whatever happens to the link."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contract.box import collect, eventually
from tests.guest.rig import Guest, guest
from tests.guest.test_guest_link import living
from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.core.commands.bulk import BulkStream
from yaosb_jupyter.link import handover
from yaosb_jupyter.tai.runtimes.base import ExecStream

MIB = 2**20
NUMBERS = "".join(f"{number}\n" for number in range(1, 1_500_001)).encode()
COUNT = "seq 1500000; echo beside >&2; exit 3"


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Guest]:
    async with guest(tmp_path) as found:
        await found.link.connected(10)
        before = descriptors(os.getpid()), descriptors(found.process.pid)
        yield found

        async def none_left() -> bool:
            return (descriptors(os.getpid()), descriptors(found.process.pid)) == before

        await eventually(none_left, what="every descriptor is closed")


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


async def until(stream: ExecStream, size: int) -> bytes:
    """At least so much of stdout."""
    found = b""
    while len(found) < size:
        chunk = await stream.receive()
        assert chunk is not None
        assert chunk[0] is ExecChannel.STDOUT
        found += chunk[1]
    return found


async def whole(stream: ExecStream, found: bytes = b"") -> None:
    async with asyncio.timeout(20):
        ran = await collect(stream)
    assert ran.code == 3
    assert hashlib.sha256(found + ran.stdout).digest() == hashlib.sha256(NUMBERS).digest()
    assert ran.stderr == b"beside\n"


async def handed_over(running: Guest, **options: Any) -> tuple[BulkStream, bytes]:
    """A command that counts, most of it yet to be read from the pipe."""
    stream = BulkStream(await running.exec("sh", "-c", COUNT, **options))
    found = await until(stream, MIB)
    found += await until(stream, MIB)
    assert stream._pipe is not None
    return stream, found


async def break_link(running: Guest) -> None:
    connection = await running.link.connected(10)
    connection.detach().close()
    await connection.wait_closed()


async def test_all_of_it_comes_and_stderr_and_the_end(running: Guest) -> None:
    await whole(*await handed_over(running))


async def test_its_offset_counts_all(running: Guest) -> None:
    stream, found = await handed_over(running)
    assert stream.offset == len(found)
    await whole(stream, found)
    assert stream.offset == len(NUMBERS) + len("beside\n")


async def test_little_output_is_not_asked_for(running: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = await running.exec("head", "-c", str(MIB - 1), "/dev/zero")
    monkeypatch.setattr(stream, "_take", None)
    assert len((await collect(BulkStream(stream))).stdout) == MIB - 1


async def test_a_slow_reader_holds_up_its_command(running: Guest, tmp_path: Path) -> None:
    stream = BulkStream(await running.exec("sh", "-c", "head -c 50000000 /dev/zero; touch through"))
    await until(stream, 2 * MIB)
    # A command that was begun later, and writes as much, is through long before.
    assert (await running.run("head", "-c", "50000000", "/dev/zero"))[0].exit_code == 0
    assert not (tmp_path / "through").exists()
    assert (await stream.wait()).exit_code == 0
    assert (tmp_path / "through").exists()


async def test_who_else_holds_the_pipe_is_not_waited_for(running: Guest) -> None:
    stream = BulkStream(await running.exec("sh", "-c", "sleep 60 & head -c 5000000 /dev/zero"))
    began = time.monotonic()
    assert len((await collect(stream)).stdout) == 5_000_000
    assert time.monotonic() < began + 20
    await stream.cancel(0)  # what it left behind


async def test_cancelled_it_ends_and_what_it_wrote_can_be_read(running: Guest) -> None:
    stream = BulkStream(await running.exec("sh", "-c", "head -c 100000000 /dev/zero; sleep 61"))
    await until(stream, 2 * MIB)
    await stream.cancel(0.1)
    while await stream.receive() is not None:
        pass
    assert (await stream.wait()).signal is not None
    assert not await asyncio.to_thread(living, "61")


async def test_it_ends_at_its_timeout(running: Guest) -> None:
    stream = BulkStream(await running.exec("cat", "/dev/zero", timeout=0.5))
    assert (await stream.wait()).timed_out


async def test_closed_while_somebody_reads(running: Guest) -> None:
    stream = BulkStream(await running.exec("sh", "-c", "head -c 3000000 /dev/zero; exec sleep 62"))
    await until(stream, 3_000_000)
    reading = asyncio.create_task(stream.receive())
    await asyncio.sleep(0)
    await stream.aclose()
    async with asyncio.timeout(10):
        assert await reading is None


async def test_the_link_may_break_afterwards(running: Guest) -> None:
    stream, found = await handed_over(running)
    await break_link(running)
    found += await until(stream, MIB)
    await break_link(running)
    await whole(stream, found)


async def no_pipe(_: Guest) -> None:
    raise PermissionError("another user's")


@pytest.mark.parametrize("happens", [break_link, no_pipe])
async def test_what_is_not_taken_comes_by_the_link(
    happens: Callable[[Guest], Awaitable[None]], running: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, receive = 0, handover._receive

    async def hindered(connected: object, taking: handover.Handover, offset: int) -> None:
        nonlocal asked
        asked += 1

        def own_pipe(received: int) -> int:
            os.close(received)
            raise OSError

        with monkeypatch.context() as patched:
            if happens is no_pipe:
                patched.setattr(handover, "own_pipe", own_pipe)
            else:
                await happens(running)
            await receive(connected, taking, offset)  # type: ignore[arg-type]

    monkeypatch.setattr(handover, "_receive", hindered)
    stream = BulkStream(await running.exec("sh", "-c", COUNT))
    await whole(stream)
    assert asked == 1
    assert stream._pipe is None


async def test_another_manager_goes_on_by_the_link(running: Guest) -> None:
    stream, found = await handed_over(running, id="counting")
    stream._let_go()  # as the first one's end does
    await running.relink()

    async def kill() -> None:
        running.process.kill()

    again = await running.link.commands.attach("counting", since=len(found), kill=kill)
    await whole(BulkStream(again), found)
