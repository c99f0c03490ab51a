"""What commands leave behind: it stays when they end by themselves, and goes when they are cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.box import Box, collect, eventually, mark, receive_until
from tests.contract.hosts import Host, host_of, hosts

DEAF = "trap '' INT; setsid sleep $1 >/dev/null 2>&1 & trap - INT; echo ready; exec sleep 1000"
"""Leaves a process that ignores the interrupt which ends the command itself."""


@pytest.fixture(params=hosts("memory", "docker", "docker-engine", "embedded"))
def host(request: pytest.FixtureRequest, directory: Path) -> Iterator[Host]:
    yield from host_of(request.param, directory)


async def is_there(box: Box, number: str) -> bool:
    return await box.pids_of(number) != []


async def test_cancel_after_an_interrupt_ends_what_ignored_it(box: Box) -> None:
    number = mark()
    stream = await box.stream("sh", "-c", DEAF, "sh", number)
    await receive_until(stream, b"ready\n")
    await eventually(lambda: is_there(box, number), what="the background process sleeps")
    await stream.signal(2)
    assert (await collect(stream)).code == 130
    assert await box.pids_of(number) != []
    await stream.cancel(0.0)
    assert await box.pids_of(number) == []


async def test_a_command_that_ended_leaves_its_daemons_when_let_go(box: Box) -> None:
    number = mark()
    stream = await box.stream("sh", "-c", "setsid sleep $1 >/dev/null 2>&1 & echo ready", "sh", number)
    await collect(stream)
    await stream.aclose()
    await eventually(lambda: is_there(box, number), what="it goes on")
