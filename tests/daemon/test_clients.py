"""What clients of a daemon share, what a lost daemon means to them, and a lost client to the daemon."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.daemon.conftest import Connect, Station, configure, is_alive, pid_of_command, wait_until
from tests.manager.waiting import until
from yaosb_jupyter.choices import Lifecycle, Status
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.errors import (
    AlreadyExistsError,
    CommandNotFoundError,
    InvalidOptionError,
    NotAvailableError,
    NotFoundError,
    PathError,
    UnavailableError,
)
from yaosb_jupyter.types import Exit, Output


async def test_two_clients_see_the_same_sandboxes(connect: Connect) -> None:
    one, two = await connect(), await connect()
    made = await one.create("lab", labels={"by": "one"})
    (seen,) = await two.list()
    assert (seen.uid, seen.labels) == (made.uid, {"by": "one"})
    await (await two.get("lab")).files.write("note", "from two")
    assert await made.files.read_text("note") == "from two"
    await two.remove("lab")
    assert await one.list() == []


async def test_errors_come_through_as_themselves(manager: AsyncManager) -> None:
    sandbox = await manager.create("lab")
    with pytest.raises(AlreadyExistsError, match="lab"):
        await manager.create("lab")
    with pytest.raises(NotFoundError) as caught:
        await manager.get("nothing")
    assert caught.value.hint
    with pytest.raises(CommandNotFoundError) as missing:
        await sandbox.exec(["no-such-command"])
    assert missing.value.exit_code == 127
    with pytest.raises(PathError):
        await sandbox.files.read("../../etc/passwd")
    with pytest.raises(NotFoundError):
        await sandbox.files.read("nothing")


async def test_defaults_fill_what_a_create_leaves_open(connect: Connect) -> None:
    manager = await connect(lifecycle="long-running", idle_timeout="5m", labels={"team": "blue"}, env={"A": "1"})
    plain = await manager.create()
    assert plain.last_info.lifecycle is Lifecycle.LONG_RUNNING
    assert plain.last_info.idle_timeout == 300
    assert plain.last_info.labels == {"team": "blue"}
    other = await manager.create(idle_timeout=7, labels={"by": "me"}, env={"B": "2"})
    assert other.last_info.idle_timeout == 7
    assert other.last_info.labels == {"team": "blue", "by": "me"}
    assert (await other.exec("echo $A$B")).stdout == "12\n"


async def test_defaults_that_do_not_exist_are_refused(station: Station, connect: Connect) -> None:
    with pytest.raises(InvalidOptionError, match="max_sandboxes"):
        await connect(max_sandboxes=3)
    assert station.pid is None


async def test_a_closed_manager_says_so(connect: Connect) -> None:
    manager = await connect()
    await manager.close()
    with pytest.raises(NotAvailableError, match="closed"):
        await manager.list()


# The daemon is lost


async def test_a_killed_daemon_is_started_again_and_has_everything(station: Station, manager: AsyncManager) -> None:
    sandbox = await manager.create("lab", lifecycle="persistent", cmd=["sleep", "5"])
    await sandbox.files.write("kept", "yes")
    before = station.pid
    await asyncio.to_thread(station.kill)
    (info,) = await manager.list()
    assert (info.uid, info.lifecycle) == (sandbox.uid, Lifecycle.PERSISTENT)
    assert station.pid not in (None, before)
    await sandbox.start()  # the memory engine went with the daemon
    assert (await sandbox.exec("cat kept")).stdout == "yes"
    assert (await sandbox.info()).status is Status.RUNNING


async def test_calls_that_may_be_repeated_are_and_others_tell(station: Station, manager: AsyncManager) -> None:
    """The daemon is stopped while it holds both kinds of request."""
    sandbox = await manager.create("lab", cmd=["sleep", "5"])
    pid = station.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    listing = asyncio.create_task(manager.list())
    removing = asyncio.create_task(manager.remove("lab"))
    command = asyncio.create_task(sandbox.exec("echo hi"))
    await asyncio.sleep(0.05)  # no condition tells that a frame lies in a socket
    await asyncio.to_thread(station.kill)
    with pytest.raises(UnavailableError, match=r"'remove'.*not known") as caught:
        await removing
    assert caught.value.hint
    with pytest.raises(UnavailableError, match="'exec'"):
        await command
    assert [info.id for info in await listing] == ["lab"]
    assert station.log.count(" serving ") == 2


async def test_a_command_tells_that_its_daemon_was_lost(station: Station, manager: AsyncManager) -> None:
    sandbox = await manager.create("lab", cmd=["sleep", "5"])
    async with sandbox.stream("echo one; exec sleep 5") as stream:
        events = aiter(stream)
        assert isinstance(await anext(events), Output)
        await asyncio.to_thread(station.kill)
        with pytest.raises(UnavailableError, match="lost"):
            await anext(events)


async def test_a_stopped_daemon_is_started_by_the_next_call(station: Station, manager: AsyncManager) -> None:
    await asyncio.to_thread(station.kill, signal.SIGTERM)
    assert await manager.list() == []
    await manager.create()


async def test_calls_at_once_after_a_loss_share_one_new_connection(station: Station, manager: AsyncManager) -> None:
    await asyncio.to_thread(station.kill)
    await asyncio.gather(*(manager.pools() for _ in range(20)))
    assert station.log.count(" serving ") == 2


# The client is lost

RUNNER = """
import sys, yaosb_jupyter
manager = yaosb_jupyter.connect()
sandbox = manager.create("lab")
sandbox.exec("echo $$ > pid; exec sleep 60", on_stdout=print)
"""


async def test_a_killed_client_ends_its_command_and_leaves_its_sandbox(station: Station, manager: AsyncManager) -> None:
    client = station.script(RUNNER)
    pid = await pid_of_command(manager)
    client.kill()
    await asyncio.to_thread(wait_until, lambda: not is_alive(pid))
    (info,) = await manager.list()
    assert (info.id, info.status, info.lifecycle) == ("lab", Status.RUNNING, Lifecycle.SESSION)


async def test_a_closed_manager_ends_its_commands(connect: Connect) -> None:
    one, two = await connect(), await connect()
    sandbox = await one.create("lab")
    running = asyncio.create_task(sandbox.exec("echo $$ > pid; exec sleep 60"))
    pid = await pid_of_command(two)
    await one.close()
    await asyncio.to_thread(wait_until, lambda: not is_alive(pid))
    with pytest.raises(UnavailableError):
        await running


async def test_a_cancelled_exec_ends_its_command(manager: AsyncManager) -> None:
    sandbox = await manager.create("lab")
    running = asyncio.create_task(sandbox.exec("echo $$ > pid; exec sleep 60"))
    pid = await pid_of_command(manager)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not is_alive(pid)


async def test_a_cancelled_create_leaves_nothing(manager: AsyncManager) -> None:
    for delay in range(8):
        creation = asyncio.create_task(manager.create())
        for _ in range(delay):
            await asyncio.sleep(0.001)
        creation.cancel()
        await asyncio.gather(creation, return_exceptions=True)
        if not creation.cancelled():
            await creation.result().remove()
    await until(lambda: _nothing(manager))


async def test_a_one_shot_goes_with_the_client_that_ran_it(station: Station, manager: AsyncManager) -> None:
    """FAULTS M6."""
    client = station.script(RUNNER.replace('"lab"', '"lab", lifecycle="one-shot"'))
    pid = await pid_of_command(manager)
    client.kill()
    await until(lambda: _nothing(manager))
    assert not is_alive(pid)


async def _nothing(manager: AsyncManager) -> bool:
    return not await manager.list()


# What flows

SIZE = 200 * 2**20


async def test_large_output_arrives_whole(manager: AsyncManager) -> None:
    sandbox = await manager.create()
    received = 0
    digest = hashlib.sha256()
    program = f"import sys; [sys.stdout.buffer.write(b'0123456789abcdef' * 65536) for _ in range({SIZE >> 20})]"
    async with sandbox.stream(["python3", "-c", program], encoding=None) as stream:
        async for event in stream:
            if isinstance(event, Exit):
                assert event.status.exit_code == 0
            else:
                received += len(event.data)
                digest.update(event.data)
    assert received == SIZE
    assert digest.hexdigest() == hashlib.sha256(b"0123456789abcdef" * (SIZE // 16)).hexdigest()


async def test_a_slow_reader_bounds_the_daemons_memory(station: Station, manager: AsyncManager) -> None:
    """FAULTS X9."""
    sandbox = await manager.create()
    before = _resident(station.pid)
    async with sandbox.stream("cat /dev/zero", encoding=None) as stream:
        events = aiter(stream)
        taken = 0
        while taken < 32 * 2**20:
            event = await anext(events)
            assert isinstance(event, Output)
            taken += len(event.data)
        for _ in range(20):
            await manager.list()
        assert _resident(station.pid) - before < 32 * 2**20
        assert (await sandbox.exec("echo others go on")).exit_code == 0


def _resident(pid: int | None) -> int:
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGESIZE")


async def test_input_is_streamed_and_ended(manager: AsyncManager) -> None:
    sandbox = await manager.create()
    sent = 0

    async def content() -> AsyncIterator[bytes]:
        nonlocal sent
        for number in range(64):
            sent += 1
            yield bytes([number]) * 2**18

    result = await sandbox.exec("wc -c", stdin=content())
    assert int(result.stdout) == 64 * 2**18
    assert sent == 64


async def test_a_command_whose_input_nobody_reads_can_still_be_signalled(manager: AsyncManager) -> None:
    sandbox = await manager.create()
    async with sandbox.stream("trap 'exit 7' INT; echo ready; while :; do sleep 0.05; done", stdin=True) as stream:
        events = aiter(stream)
        await anext(events)
        feeding = asyncio.create_task(stream.send(b"x" * 8 * 2**20))
        await asyncio.sleep(0.05)  # it would go on if somebody read
        assert not feeding.done()
        await stream.signal(signal.SIGINT)
        last = [event async for event in events][-1]
        assert isinstance(last, Exit)
        assert last.status.exit_code == 7
        await asyncio.wait_for(feeding, 5)


async def test_what_a_cancelled_command_wrote_can_still_be_read(manager: AsyncManager) -> None:
    sandbox = await manager.create("lab")
    async with sandbox.stream("echo before; echo $$ > pid; exec sleep 60", encoding=None) as stream:
        await pid_of_command(manager)
        await stream.cancel()
        events = [event async for event in stream]
    assert isinstance(events[0], Output)
    assert events[0].data == b"before\n"
    assert isinstance(events[-1], Exit)


async def test_a_large_file_is_streamed_both_ways(manager: AsyncManager) -> None:
    sandbox = await manager.create()

    async def content() -> AsyncIterator[bytes]:
        for number in range(64):
            yield bytes([number]) * 2**20

    info = await sandbox.files.write("big", content())
    assert info.size == 64 * 2**20
    assert await sandbox.files.read("big", offset=2**20 - 1, size=2) == b"\0\1"
    pieces = [len(piece) async for piece in sandbox.files.stream("big")]
    assert sum(pieces) == 64 * 2**20
    assert max(pieces) <= 2**20


async def test_a_write_that_fails_leaves_the_old_file(manager: AsyncManager) -> None:
    """FAULTS X10."""
    sandbox = await manager.create()
    await sandbox.files.write("data", "old")

    async def content() -> AsyncIterator[bytes]:
        yield b"new" * 2**19
        raise ZeroDivisionError("the source broke")

    with pytest.raises(ZeroDivisionError):
        await sandbox.files.write("data", content())
    assert await sandbox.files.read("data") == b"old"

    async def is_clean() -> bool:
        return [info.name for info in await sandbox.files.list()] == ["data"]

    await until(is_clean)


async def test_a_refused_write_does_not_take_the_whole_content(manager: AsyncManager) -> None:
    sandbox = await manager.create()
    taken = 0

    async def content() -> AsyncIterator[bytes]:
        nonlocal taken
        for _ in range(10_000):
            taken += 1
            yield b"x" * 2**16

    with pytest.raises(PathError):
        await sandbox.files.write("../outside", content())
    assert taken < 1000


async def test_leaving_a_read_early_lets_go_of_it(manager: AsyncManager) -> None:
    sandbox = await manager.create()
    await sandbox.files.write("big", b"x" * 8 * 2**20)
    for _ in range(20):
        stream = sandbox.files.stream("big")
        async for _piece in stream:
            break
        await stream.aclose()  # type: ignore[attr-defined]
    assert (await sandbox.files.stat("big")).size == 8 * 2**20


async def test_a_list_longer_than_a_frame_arrives_whole(manager: AsyncManager) -> None:
    sandbox = await manager.create()
    name = "n" * 200
    await sandbox.exec(f"i=0; while [ $i -lt 6000 ]; do : > {name}$i; i=$((i+1)); done", check=True)
    assert len(await sandbox.files.list()) == 6000


async def test_logs_follow_until_left(manager: AsyncManager) -> None:
    sandbox = await manager.create(cmd="i=0; while :; do echo $i; i=$((i+1)); sleep 0.02; done")
    seen = b""
    logs = sandbox.logs(follow=True)
    async for chunk in logs:
        seen += chunk.data
        if seen.count(b"\n") > 5:
            break
    await logs.aclose()  # type: ignore[attr-defined]
    assert seen.startswith(b"0\n1\n2\n")


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("local", id="docker", marks=pytest.mark.docker),
        pytest.param("embedded", marks=pytest.mark.embedded),
    ],
)
async def test_environments_outlive_the_daemon(
    station: Station, connect: Connect, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    configure(station, monkeypatch, address)
    manager = await connect()
    sandbox = await manager.create("lab")
    await sandbox.exec("sleep 300 >/dev/null 2>&1 & echo $! > pid; echo kept > file")
    await asyncio.to_thread(station.kill)
    assert (await sandbox.info()).status is Status.RUNNING
    assert (await sandbox.exec("kill -0 $(cat pid) && cat file")).stdout == "kept\n"
    await manager.remove("lab")
