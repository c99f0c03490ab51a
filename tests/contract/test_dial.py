"""Ports inside an environment, on the runtimes that reach them in every network mode (none is the default here)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.contract.box import Box, sha
from tests.contract.conftest import MakeBox
from tests.contract.hosts import Host, host_of, hosts
from tests.rig.require import require
from yaosb_jupyter.errors import NotRunningError, PortUnavailableError, SandboxLostError
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.runtimes.base import Capability, ExecStream, RuntimeInfo

MIB = 2**20

SERVER = """
import socket, sys, threading

def echo(connection):
    while data := connection.recv(65536):
        connection.sendall(data)
    connection.sendall(b"|end")
    connection.close()

def upper(connection):
    connection.sendall(b"hello")
    connection.shutdown(socket.SHUT_WR)
    got = b""
    while data := connection.recv(65536):
        got += data
    print("got", len(got), flush=True)

def count(connection):
    got = 0
    while data := connection.recv(65536):
        got += len(data)
    print("got", got, flush=True)

def flood(connection):
    sent = 0
    connection.settimeout(0.3)
    try:
        while True:
            sent += connection.send(b"x" * 65536)
    except TimeoutError:
        print("blocked", sent, flush=True)
    connection.settimeout(None)
    connection.recv(1)
    connection.close()

def deaf(connection):
    print("accepted", flush=True)
    sys.stdin.readline()
    count(connection)

def reset(connection):
    connection.recv(1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\\1\\0\\0\\0\\0\\0\\0\\0")
    connection.close()

serve = globals()[sys.argv[1]]
family = socket.AF_INET6 if sys.argv[2:] == ["::1"] else socket.AF_INET
listener = socket.socket(family)
listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
listener.listen(128)
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


@pytest.fixture(params=hosts("memory", "docker", "docker-relay", "docker-tls", "embedded"))
def host(request: pytest.FixtureRequest, directory: Path) -> Iterator[Host]:
    """The runtimes that tell `Capability.DIAL`."""
    if request.param == "embedded":
        require("bubblewrap")
    yield from host_of(request.param, directory)


def test_it_is_told_that_ports_are_reached(info: RuntimeInfo) -> None:
    assert Capability.DIAL in info.capabilities


@asynccontextmanager
async def serving(box: Box, kind: str, *address: str) -> AsyncIterator[tuple[int, ExecStream]]:
    """A server inside: its port, and its process."""
    stream = await box.stream("python3", "-c", SERVER, kind, *address, stdin=True)
    try:
        yield int(await line(stream)), stream
    finally:
        await stream.cancel(0)


async def line(stream: ExecStream) -> str:
    seen = b""
    async with asyncio.timeout(20):
        while not seen.endswith(b"\n"):
            piece = await stream.receive()
            assert piece is not None, seen
            seen += piece[1]
    return seen.decode()


async def dial(box: Box, port: int) -> ByteStream:
    return await box.runtime.dial(box.runtime_id, port)


async def rest(connection: ByteStream) -> bytes:
    got = bytearray()
    async with asyncio.timeout(30):
        while data := await connection.receive():
            got += data
    return bytes(got)


async def until(connection: ByteStream, wanted: bytes) -> None:
    got = b""
    async with asyncio.timeout(20):
        while got != wanted:
            data = await connection.receive()
            assert data, got
            got += data
            assert wanted.startswith(got)


async def test_bytes_go_both_ways(box: Box) -> None:
    async with serving(box, "echo") as (port, _), await dial(box, port) as connection:
        for word in (b"one", b"two", b"\xff\x00"):
            await connection.send(word)
            await until(connection, word)


@pytest.mark.parametrize("host", hosts("memory", "embedded"), indirect=True)  # Docker's loopback has IPv4 only
async def test_a_server_at_the_other_loopback_is_found(box: Box) -> None:
    async with serving(box, "echo", "::1") as (port, _), await dial(box, port) as connection:
        await connection.send(b"six")
        await until(connection, b"six")


async def test_our_end_leaves_the_other_way_open(box: Box) -> None:
    async with serving(box, "echo") as (port, _), await dial(box, port) as connection:
        await connection.send(b"all of it")
        await connection.send_eof()
        assert await rest(connection) == b"all of it|end"
        assert await connection.receive() == b""


async def test_the_end_of_the_other_side_leaves_our_way_open(box: Box) -> None:
    async with serving(box, "upper") as (port, process), await dial(box, port) as connection:
        assert await rest(connection) == b"hello"
        for _ in range(4):
            await connection.send(b"x" * MIB)
        await connection.send_eof()
        assert await line(process) == f"got {4 * MIB}\n"


async def test_what_was_sent_before_the_close_arrives(box: Box) -> None:
    async with serving(box, "count") as (port, process):
        async with await dial(box, port) as connection:
            await connection.send(b"x" * 300_000)
        assert await line(process) == "got 300000\n"


async def test_much_goes_through_unchanged(box: Box) -> None:
    data = bytes(range(256)) * 4096 * 16

    async def feed(connection: ByteStream) -> None:
        for start in range(0, len(data), 100_000):
            await connection.send(data[start : start + 100_000])
        await connection.send_eof()

    async with serving(box, "echo") as (port, _), await dial(box, port) as connection:
        feeding = asyncio.ensure_future(feed(connection))
        assert sha(await rest(connection)) == sha(data + b"|end")
        await feeding


async def test_x9_a_reader_that_does_not_read_stops_its_server_only(box: Box) -> None:
    async with serving(box, "flood") as (port, process), await dial(box, port) as connection:
        told = (await line(process)).split()
        assert told[0] == "blocked"
        assert int(told[1]) < 32 * MIB
        assert (await box.sh("echo others go on")).stdout == b"others go on\n"
        await connection.send(b"!")
        assert len(await rest(connection)) == int(told[1])


async def test_x9_a_server_that_does_not_read_makes_the_sender_wait(box: Box) -> None:
    async with serving(box, "deaf") as (port, process), await dial(box, port) as connection:
        assert await line(process) == "accepted\n"
        sent = 0
        with pytest.raises(TimeoutError):
            while sent < 64 * MIB:
                async with asyncio.timeout(0.5):
                    await connection.send(b"x" * 65536)
                sent += 65536
        assert sent < 32 * MIB
        await process.send(b"\n")
        await connection.send_eof()
        assert sent <= int((await line(process)).split()[1]) <= sent + 65536


async def test_many_at_once(box: Box) -> None:
    async def talk(port: int, number: int) -> None:
        async with await dial(box, port) as connection:
            for step in range(5):
                word = f"{number}:{step}".encode()
                await connection.send(word)
                await until(connection, word)

    async with serving(box, "echo") as (port, _):
        await asyncio.gather(*(talk(port, number) for number in range(50)))


async def test_where_nothing_listens_it_is_said_so(box: Box) -> None:
    async with serving(box, "echo") as (port, process):
        await process.cancel(0)
        with pytest.raises(PortUnavailableError, match=str(port)):
            await dial(box, port)


async def test_a_connection_that_is_reset_is_an_error(box: Box) -> None:
    async with serving(box, "reset") as (port, _), await dial(box, port) as connection:
        await connection.send(b"!!")
        with pytest.raises(PortUnavailableError):
            await rest(connection)
        await connection.send(b"dropped")


async def test_a_close_ends_it_for_whoever_reads(box: Box) -> None:
    async with serving(box, "echo") as (port, _):
        connection = await dial(box, port)
        reading = asyncio.ensure_future(connection.receive())
        await asyncio.sleep(0)
        await connection.aclose()
        await connection.aclose()
        async with asyncio.timeout(10):
            assert await reading == b""
        await connection.send(b"dropped")


async def test_a_dial_that_is_cancelled_leaves_nothing(box: Box) -> None:
    async with serving(box, "echo") as (port, _):
        dialling = asyncio.ensure_future(dial(box, port))
        await asyncio.sleep(0)
        dialling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dialling
        async with await dial(box, port) as connection:
            await connection.send(b"still here")
            await until(connection, b"still here")


async def test_x15_an_environment_that_does_not_run_says_so(make_box: MakeBox) -> None:
    box = await make_box(start=False)
    with pytest.raises(NotRunningError):
        await dial(box, 80)


async def test_the_end_of_the_environment_ends_its_connections(box: Box) -> None:
    async with serving(box, "echo") as (port, _):
        connection = await dial(box, port)
        await connection.send(b"one")
        await until(connection, b"one")
        await box.stop(0)
        # The server is killed first, or the link with it: an end, or an error that says why.
        with suppress(PortUnavailableError, SandboxLostError):
            assert await rest(connection) in (b"", b"|end")
        await connection.aclose()
