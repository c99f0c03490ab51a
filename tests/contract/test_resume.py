"""Commands in the background, and commands taken up again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.box import Box, collect, eventually, mark, receive_until
from tests.contract.conftest import Opened
from tests.contract.hosts import Host, host_of, hosts
from yaosb_jupyter.errors import CommandNotFoundError, NotFoundError, SandboxLostError
from yaosb_jupyter.options import ExecOptions
from yaosb_jupyter.tai.runtimes.base import Capability, ExecStream, RuntimeInfo
from yaosb_jupyter.types import CommandInfo

MIB = 2**20
Spawn = Callable[..., Awaitable[CommandInfo]]
COUNT = 'i=0; while [ $i -lt 200 ]; do echo "line $i"; i=$((i+1)); done; echo ran >> runs; exit 9'
LINES = b"".join(b"line %d\n" % number for number in range(200))


@pytest.fixture(params=hosts("docker", "docker-relay", "embedded"))
def host(request: pytest.FixtureRequest, directory: Path) -> Iterator[Host]:
    """The runtimes that tell `Capability.BACKGROUND`."""
    yield from host_of(request.param, directory)


@pytest.fixture
def spawn(box: Box) -> Spawn:
    async def begin(script: str, **options: object) -> CommandInfo:
        given: dict[str, Any] = {"argv": ("sh", "-c", script), **options}
        return await box.runtime.spawn(box.runtime_id, ExecOptions(**given))

    return begin


async def attach(box: Box, command: CommandInfo, since: int | None = 0) -> ExecStream:
    return await box.runtime.attach(box.runtime_id, command.id, since)


async def known(box: Box, command_id: str) -> CommandInfo | None:
    return next((one for one in await box.runtime.commands(box.runtime_id) if one.id == command_id), None)


def test_it_is_told_that_commands_can_be_taken_up_again(info: RuntimeInfo) -> None:
    assert Capability.BACKGROUND in info.capabilities


async def test_a_command_tells_what_it_used(box: Box) -> None:
    ran = await box.python("data = bytearray(60 * 2**20); sum(range(3 * 10**6))")
    assert 60 * MIB < ran.status.peak_memory < 200 * MIB
    assert 0.01 < ran.status.cpu_time < 20


async def test_a_command_in_the_background_goes_on_without_anybody(box: Box, spawn: Spawn) -> None:
    command = await spawn(COUNT)
    assert command.background
    assert command.argv[:2] == ("sh", "-c")
    ran = await collect(await attach(box, command))
    assert (ran.code, ran.stdout) == (9, LINES)
    again = await attach(box, command, since=len(LINES) - 9)
    assert (await collect(again)).stdout == b"line 199\n"
    assert (again.offset, again.lost) == (len(LINES), 0)
    last = await known(box, command.id)
    assert last is not None
    assert (last.written, last.kept) == (len(LINES), 0)
    assert last.exit == ran.status
    assert await box.read("runs") == b"ran\n"


async def test_asked_for_twice_it_runs_once(box: Box, spawn: Spawn) -> None:
    first = await spawn(COUNT, id="once")
    again = await spawn(COUNT, id="once")
    assert (first.id, first.pid) == (again.id, again.pid) == ("once", first.pid)
    await (await attach(box, first, None)).wait()
    again = await spawn(COUNT, id="once")
    assert again.exit is not None
    assert await box.read("runs") == b"ran\n"


async def test_its_end_can_be_awaited_without_its_output(box: Box, spawn: Spawn) -> None:
    command = await spawn("cat /dev/zero | head -c 3000000; exit 3")
    waiting = await attach(box, command, None)
    assert await waiting.receive() is None
    assert (await waiting.wait()).exit_code == 3


async def test_output_that_nobody_takes_makes_way_and_is_counted(box: Box, spawn: Spawn) -> None:
    command = await spawn("head -c 3145728 /dev/zero; echo end")
    await (await attach(box, command, None)).wait()
    stream = await attach(box, command, since=100)
    ran = await collect(stream)
    assert len(ran.stdout) == MIB
    assert ran.stdout.endswith(b"\0end\n")
    assert stream.lost == 3 * MIB + 4 - 100 - MIB
    assert stream.offset == 3 * MIB + 4


async def test_many_may_follow_and_leaving_ends_nothing(box: Box, spawn: Spawn) -> None:
    command = await spawn("echo one; while [ ! -e go ]; do sleep 0.05; done; echo two")
    streams = [await attach(box, command) for _ in range(3)]
    for stream in streams:
        await receive_until(stream, b"one\n")
    await streams[0].aclose()
    await box.write("go", b"")
    for stream in streams[1:]:
        assert (await collect(stream)).stdout == b"two\n"


async def test_it_is_ended_with_its_whole_tree(box: Box, spawn: Spawn) -> None:
    number = mark()
    command = await spawn(f"trap '' TERM; setsid sleep {number} & echo ready; sleep {number}")
    await receive_until(await attach(box, command), b"ready\n")
    await box.runtime.control(box.runtime_id, command.id, grace=0.3)
    async with asyncio.timeout(10):
        status = await (await attach(box, command, None)).wait()
    assert status.signal == 9
    assert await box.pids_of(number) == []
    await box.runtime.control(box.runtime_id, command.id, grace=0.3, signal=15)  # nothing happens


async def test_it_is_signalled(box: Box, spawn: Spawn) -> None:
    command = await spawn("trap 'echo usr; exit 6' USR1; echo ready; while :; do sleep 0.05; done")
    stream = await attach(box, command)
    await receive_until(stream, b"ready\n")
    await box.runtime.control(box.runtime_id, command.id, signal=10)
    ran = await collect(stream)
    assert (ran.stdout, ran.code) == (b"usr\n", 6)


async def test_what_is_not_known_is_not_found(box: Box, spawn: Spawn) -> None:
    del spawn
    for call in (
        box.runtime.attach(box.runtime_id, "nothing"),
        box.runtime.control(box.runtime_id, "nothing", grace=0),
    ):
        with pytest.raises(NotFoundError):
            await call
    with pytest.raises(CommandNotFoundError) as caught:
        await box.runtime.spawn(box.runtime_id, ExecOptions(argv=("no-such-command",)))
    assert caught.value.exit_code == 127


async def test_a_sandbox_that_stops_takes_it_along(box: Box, spawn: Spawn) -> None:
    command = await spawn("sleep 1000")
    stream = await attach(box, command)
    waiting = asyncio.create_task(stream.wait())
    await box.stop()
    async with asyncio.timeout(10):
        (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
    # It was told of the SIGTERM, or the sandbox was gone before.
    assert isinstance(outcome, SandboxLostError) or outcome.signal == 15  # type: ignore[union-attr]
    await box.start()
    assert await known(box, command.id) is None


# After a restart of the manager


async def test_in_the_background_it_outlives_the_manager(box: Box, spawn: Spawn, opened: Opened) -> None:
    command = await spawn("echo before; while [ ! -e go ]; do sleep 0.05; done; echo after; exit 4")
    runtime = await opened.again()
    later = Box(runtime=runtime, runtime_id=box.runtime_id, spec=box.spec)
    assert await known(later, command.id) is not None
    stream = await attach(later, command)
    await receive_until(stream, b"before\n")
    await later.write("go", b"")
    ran = await collect(stream)
    assert (ran.stdout, ran.code) == (b"after\n", 4)


async def test_in_the_foreground_it_is_taken_up_by_the_next_manager(box: Box, spawn: Spawn, opened: Opened) -> None:
    """Where the earlier one was killed: nothing that it had not passed on is lost."""
    del spawn
    script = 'echo one; while [ ! -e go ]; do sleep 0.05; done; read -r line; echo "got $line"; exit 4'
    stream = await box.stream("sh", "-c", script, id="mine", stdin=True)
    stream.defer_acknowledgement()
    await receive_until(stream, b"one\n")
    runtime = await opened.again()
    later = Box(runtime=runtime, runtime_id=box.runtime_id, spec=box.spec)
    again = await runtime.attach(box.runtime_id, "mine", 0)
    assert not again.background
    assert again.input_offset == 0
    await again.send(b"input\n")
    await again.close_stdin()
    await later.write("go", b"")
    ran = await collect(again)
    assert (ran.stdout, ran.code) == (b"one\ngot input\n", 4)

    async def forgotten() -> bool:
        return await known(later, "mine") is None

    await eventually(forgotten, what="its end is acknowledged")


@pytest.mark.parametrize("letter", ["x", "\N{PILE OF POO}"])
async def test_long_command_lines_are_cut_where_many_are_listed(box: Box, spawn: Spawn, letter: str) -> None:
    arguments = (letter * 150,) * 150
    for _ in range(40):
        await spawn("exit 0", argv=("sh", "-c", "exit 0", *arguments))
    found = await box.runtime.commands(box.runtime_id)
    assert len(found) >= 32
    assert all(command.argv[:2] == ("sh", "-c") for command in found)
    assert (await box.sh("echo well")).stdout == b"well\n"
