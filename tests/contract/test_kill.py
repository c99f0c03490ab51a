"""Ending commands: cancel, timeout, signals, and by pattern; always with all they started."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.contract.box import Box, collect, eventually, mark, receive_until
from tests.contract.hosts import Host, host_of, hosts
from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.tai.runtimes.base import ExecStream

DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", sys.argv[1]])
    os._exit(0)
os.wait()
print("ready", flush=True)
time.sleep(1000)
"""

TREES: dict[str, tuple[str, ...]] = {
    "child": ("sh", "-c", "sleep $1 & echo ready; wait", "sh"),
    "grandchild": ("sh", "-c", "sh -c 'sleep $1 & wait' sh $1 & echo ready; wait", "sh"),
    "setsid": ("sh", "-c", "setsid sleep $1 & setsid setsid sleep $1 & echo ready; wait", "sh"),
    "daemon": ("python3", "-c", DAEMON),
    "term ignored": (
        "sh",
        "-c",
        "trap '' TERM; sleep $1 & sh -c 'trap \"\" TERM; sleep $1' sh $1 & echo ready; wait",
        "sh",
    ),
}


@pytest.fixture(params=hosts("memory", "docker", "docker-relay", "docker-tls", "docker-engine", "embedded"))
def host(request: pytest.FixtureRequest, directory: Path) -> Iterator[Host]:
    yield from host_of(request.param, directory)


@pytest.fixture(params=TREES)
def tree(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return TREES[request.param]


async def grown(box: Box, argv: tuple[str, ...], number: str, **options: object) -> ExecStream:
    stream = await box.stream(*argv, number, **options)
    await receive_until(stream, b"ready\n")
    await eventually(lambda: _there(box, number), what="the tree has grown")
    return stream


async def _there(box: Box, number: str) -> bool:
    return bool(await box.pids_of(number))


def gone(box: Box, number: str) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        return not await box.pids_of(number)

    return check


async def test_x3_cancel_ends_the_whole_tree(box: Box, tree: tuple[str, ...]) -> None:
    number = mark()
    stream = await grown(box, tree, number)
    began = time.monotonic()
    await stream.cancel(grace=0.5)
    assert time.monotonic() - began < 5
    assert await box.pids_of(number) == []
    await stream.cancel()


async def test_cancel_lets_a_command_clean_up(box: Box) -> None:
    script = "trap 'echo clean > clean; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    stream = await box.stream("sh", "-c", script)
    await receive_until(stream, b"ready\n")
    await stream.cancel(grace=5)
    assert await box.read("clean") == b"clean\n"


async def test_cancel_while_output_flows_unread(box: Box) -> None:
    number = mark()
    stream = await box.stream("sh", "-c", "yes & exec sleep $1", "sh", number)
    await stream.receive()
    async with asyncio.timeout(10):
        await stream.cancel(grace=0.2)
    assert await box.pids_of(number) == []


async def test_x3_x4_a_timeout_ends_the_whole_tree_on_time(box: Box, tree: tuple[str, ...]) -> None:
    number = mark()
    began = time.monotonic()
    stream = await box.stream(*tree, number, timeout=1.5)
    ran = await collect(stream)
    assert 1.4 < time.monotonic() - began < 6
    assert ran.status.timed_out
    assert ran.stdout == b"ready\n"
    await eventually(gone(box, number), within=3, what="the tree is gone")


async def test_x4_a_timeout_comes_on_time_while_output_flows(box: Box) -> None:
    began = time.monotonic()
    stream = await box.stream("yes", timeout=1)
    while await stream.receive():
        pass
    assert 0.9 < time.monotonic() - began < 6
    assert (await stream.wait()).timed_out


async def test_x4_a_timeout_comes_on_time_when_nobody_reads(box: Box) -> None:
    number = mark()
    began = time.monotonic()
    stream = await box.stream("sh", "-c", "yes & exec sleep $1", "sh", number, timeout=1)
    await eventually(lambda: _there(box, number), within=6, what="begun")
    await eventually(gone(box, number), within=6, what="killed at its timeout")
    assert time.monotonic() - began > 0.9
    async with asyncio.timeout(10):
        assert (await stream.wait()).timed_out


async def test_x4_a_command_that_ends_in_time_was_not_timed_out(box: Box) -> None:
    ran = await box.sh("exit 3", timeout=20)
    assert (ran.code, ran.status.timed_out) == (3, False)


async def test_m17_a_timeout_below_a_second_is_one(box: Box) -> None:
    began = time.monotonic()
    ran = await box.run("sleep", mark(), timeout=0.4)
    assert ran.status.timed_out
    assert 0.35 < time.monotonic() - began < 4


async def test_m17_a_timeout_of_0_is_none(box: Box) -> None:
    ran = await box.sh("sleep 0.5", timeout=0)
    assert (ran.code, ran.status.timed_out) == (0, False)


async def test_a_signal_reaches_the_command(box: Box) -> None:
    code = """
import time
try:
    print("ready", flush=True)
    time.sleep(1000)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise SystemExit(5)
"""
    stream = await box.stream("python3", "-c", code)
    await receive_until(stream, b"ready\n")
    await stream.signal(2)
    async with asyncio.timeout(5):
        ran = await collect(stream)
    assert (ran.code, ran.stdout) == (5, b"interrupted\n")
    await stream.signal(2)


async def test_a_signal_reaches_the_whole_tree(box: Box, tree: tuple[str, ...]) -> None:
    number = mark()
    stream = await grown(box, tree, number)
    await stream.signal(9)
    async with asyncio.timeout(10):
        assert (await stream.wait()).exit_code == 137
    await eventually(gone(box, number), within=3, what="the tree is gone")


async def test_aclose_ends_a_running_command(box: Box) -> None:
    number = mark()
    stream = await grown(box, TREES["child"], number)
    await stream.aclose()
    assert await box.pids_of(number) == []


async def test_a_reader_that_is_cancelled_can_go_on(box: Box) -> None:
    stream = await box.stream("sh", "-c", "sleep 0.5; echo late; exit 6")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await stream.receive()
    ran = await collect(stream)
    assert (ran.code, ran.stdout) == (6, b"late\n")


async def test_processes_are_killed_by_pattern(box: Box) -> None:
    first, second = mark(), mark()
    await box.leave(first, second)
    assert set(await box.runtime.kill_processes(box.runtime_id, f"^sleep {first}$")) != set()
    assert await box.pids_of(first) == []
    assert len(await box.pids_of(second)) == 1


async def test_the_pids_told_are_those_inside(box: Box) -> None:
    number = mark()
    await box.leave(number)
    inside = await box.pids_of(number)
    assert list(await box.runtime.kill_processes(box.runtime_id, number)) == inside


async def test_a_process_that_ignores_term_is_killed_by_pattern(box: Box) -> None:
    number = mark()
    stream = await box.stream("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done", f"loop-{number}")
    await receive_until(stream, b"ready\n")
    async with asyncio.timeout(10):
        assert await box.runtime.kill_processes(box.runtime_id, f"loop-{number}", grace=0.3)
        assert (await stream.wait()).exit_code == 137


async def test_a_pattern_that_matches_nothing_kills_nothing(box: Box) -> None:
    number = mark()
    await box.leave(number)
    assert list(await box.runtime.kill_processes(box.runtime_id, "no such line")) == []
    assert await box.pids_of(number)


async def test_a_pattern_that_matches_everything_spares_the_environment(box: Box) -> None:
    number = mark()
    await box.leave(number)
    killed = await box.runtime.kill_processes(box.runtime_id, ".")
    assert 1 not in killed
    assert await box.pids_of(number) == []
    assert (await box.sh("echo alive")).stdout == b"alive\n"


async def test_a_bad_pattern_is_told(box: Box) -> None:
    with pytest.raises(InvalidOptionError, match="pattern"):
        await box.runtime.kill_processes(box.runtime_id, "([")
