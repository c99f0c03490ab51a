"""Commands at terminals."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.box import Box, collect, eventually, mark, receive_until
from tests.contract.hosts import Host, host_of, hosts
from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.errors import CommandNotFoundError
from yaosb_jupyter.options import TerminalSize
from yaosb_jupyter.tai.runtimes.base import Capability, RuntimeInfo


@pytest.fixture(params=hosts("docker", "docker-relay", "docker-engine", "embedded"))
def host(request: pytest.FixtureRequest, directory: Path) -> Iterator[Host]:
    """The runtimes that tell `Capability.TERMINALS`."""
    yield from host_of(request.param, directory)


def test_it_is_told_that_there_are_terminals(info: RuntimeInfo) -> None:
    assert Capability.TERMINALS in info.capabilities


async def test_no_such_command_at_a_terminal(box: Box) -> None:
    stream = await box.stream("no-such-command", tty=TerminalSize())
    with pytest.raises(CommandNotFoundError) as caught:
        await stream.wait()
    assert caught.value.exit_code == 127


async def test_a_command_at_a_terminal(box: Box) -> None:
    script = "test -t 0 && test -t 1 && test -t 2 && stty size && echo err >&2; exit 5"
    stream = await box.stream("sh", "-c", script, tty=TerminalSize(columns=100, rows=30))
    ran = await collect(stream)
    assert (ran.code, ran.stdout, ran.stderr) == (5, b"30 100\r\nerr\r\n", b"")


async def test_what_is_typed_is_echoed_and_end_of_file_ends_it(box: Box) -> None:
    stream = await box.stream("cat", tty=TerminalSize())
    await stream.send(b"typed\n")
    await receive_until(stream, b"typed\r\ntyped\r\n")
    await stream.close_stdin()
    assert (await collect(stream)).code == 0


async def test_interrupt_is_typed(box: Box) -> None:
    stream = await box.stream(
        "sh", "-c", "trap 'echo stopped; exit 3' INT; echo ready; while :; do sleep 0.05; done", tty=TerminalSize()
    )
    await receive_until(stream, b"ready\r\n")
    await stream.send(b"\x03")
    ran = await collect(stream)
    assert ran.code == 3
    assert ran.stdout.endswith(b"stopped\r\n")


async def test_a_terminal_changes_its_size(box: Box) -> None:
    stream = await box.stream("sh", "-c", "echo ready; read -r line; stty size", tty=TerminalSize())
    await receive_until(stream, b"ready\r\n")
    await stream.resize(TerminalSize(columns=33, rows=44))
    await stream.send(b"\n")
    assert (await collect(stream)).stdout.endswith(b"44 33\r\n")


async def test_a_shell_at_a_terminal_ends_when_it_is_left(box: Box) -> None:
    """Shells do not listen to SIGTERM there."""
    number = mark()
    stream = await box.stream("sh", "-i", tty=TerminalSize())
    await stream.send(f"sleep {number}\n".encode())

    async def sleeps() -> bool:
        return len(await box.pids_of(number)) > 0

    await eventually(sleeps, what="it runs")
    async with asyncio.timeout(10):
        await stream.aclose()
    assert await box.pids_of(number) == []


async def test_binary_passes_a_raw_terminal(box: Box) -> None:
    stream = await box.stream("sh", "-c", "stty raw -echo; echo ready; head -c 256", tty=TerminalSize())
    await receive_until(stream, b"ready\n")
    await stream.send(bytes(range(256)))
    seen = b""
    while (piece := await stream.receive()) is not None:
        assert piece[0] is ExecChannel.STDOUT
        seen += piece[1]
    assert seen == bytes(range(256))


async def test_who_has_left_his_terminal_does_not_resize_the_next_one(box: Box) -> None:
    script = "exec <&- >&- 2>&-; exec sleep 100"
    left = await box.stream("sh", "-c", script, tty=TerminalSize())
    asked = await box.stream("sh", "-c", "echo ready; read word; stty size", tty=TerminalSize())
    await receive_until(asked, b"ready")
    others = [await box.stream("cat", tty=TerminalSize(columns=50, rows=20)) for _ in range(3)]
    await left.resize(TerminalSize(columns=7, rows=7))
    last = await box.stream("stty", "size", tty=TerminalSize(columns=50, rows=20))
    await left.resize(TerminalSize(columns=7, rows=7))
    await asked.send(b"go\n")
    assert (await collect(asked)).stdout.endswith(b"24 80\r\n")
    assert (await collect(last)).stdout == b"20 50\r\n"
    for stream in (left, *others):
        await stream.cancel(0)
