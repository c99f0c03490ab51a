"""Statistics and logs."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from tests.contract.box import Box, eventually, mark
from tests.contract.conftest import MakeBox
from yaosb_jupyter.choices import ExecChannel, Status

MIB = 2**20


async def test_stats_tell_what_is_used(box: Box) -> None:
    code = f"import time; data = b'x' * ({64 * MIB}); print('ready', flush=True); exec('while True: pass')"
    stream = await box.stream("python3", "-c", code)
    await stream.receive()

    async def busy() -> bool:
        stats = await box.runtime.stats(box.runtime_id)
        return stats.memory > 64 * MIB and stats.cpu_percent > 5 and stats.pids >= 1

    await eventually(busy, what="stats tell 64 MiB and a busy core")
    assert (await box.runtime.stats(box.runtime_id)).cpu_percent < 250
    await stream.cancel(0.1)


async def test_stats_tell_how_many_processes_there_are(box: Box) -> None:
    before = (await box.runtime.stats(box.runtime_id)).pids
    number = mark()
    await box.leave(*[number] * 5)

    async def told() -> bool:
        return (await box.runtime.stats(box.runtime_id)).pids == before + 5

    await eventually(told, what="five more processes")


async def logged(box: Box, **options: object) -> dict[ExecChannel, bytes]:
    found = {ExecChannel.STDOUT: b"", ExecChannel.STDERR: b""}
    async for chunk in box.runtime.logs(box.runtime_id, **options):
        found[chunk.channel] += chunk.data
    return found


async def ended(box: Box) -> None:
    async def stopped() -> bool:
        return (await box.runtime.inspect(box.runtime_id)).status is Status.STOPPED

    await eventually(stopped, what="the main process ended")


async def test_logs_are_those_of_the_main_process(make_box: MakeBox) -> None:
    box = await make_box(cmd=("sh", "-c", "echo one; echo wrong >&2; echo two; sleep 0.5"))
    await box.sh("echo not of the main process")
    await ended(box)
    assert await logged(box) == {ExecChannel.STDOUT: b"one\ntwo\n", ExecChannel.STDERR: b"wrong\n"}


async def test_logs_have_a_tail(make_box: MakeBox) -> None:
    box = await make_box(cmd=("sh", "-c", "for i in 1 2 3 4 5; do echo line $i; done"))
    await ended(box)
    assert (await logged(box, tail=2))[ExecChannel.STDOUT] == b"line 4\nline 5\n"
    assert (await logged(box, tail=0))[ExecChannel.STDOUT] == b""
    assert (await logged(box, tail=100))[ExecChannel.STDOUT].count(b"\n") == 5


async def test_logs_can_begin_at_a_time(make_box: MakeBox) -> None:
    script = "echo early; while [ ! -f go ]; do sleep 0.02; done; echo late"
    box = await make_box(cmd=("sh", "-c", script))

    async def early() -> bool:
        return b"early" in (await logged(box))[ExecChannel.STDOUT]

    await eventually(early, what="the first line is logged")
    await asyncio.sleep(1.1)  # engines may keep whole seconds
    since = datetime.now(UTC)
    await box.write("go", b"")
    await ended(box)
    assert (await logged(box, since=since))[ExecChannel.STDOUT] == b"late\n"


async def test_logs_of_our_own_main_process_are_followed_until_it_ends(box: Box) -> None:
    following = asyncio.ensure_future(logged(box, follow=True))
    for _ in range(3):
        await box.sh("true")
    assert not following.done()
    await box.stop()
    async with asyncio.timeout(10):
        await following


async def test_logs_are_followed_to_the_end(make_box: MakeBox) -> None:
    script = "echo first; while [ ! -f go ]; do sleep 0.02; done; echo last; exit 3"
    box = await make_box(cmd=("sh", "-c", script))
    seen = b""
    async with asyncio.timeout(20):
        async for chunk in box.runtime.logs(box.runtime_id, follow=True):
            seen += chunk.data
            if seen == b"first\n":
                await box.write("go", b"")
    assert seen == b"first\nlast\n"
