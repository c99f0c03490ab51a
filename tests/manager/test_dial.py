"""Ports of a sandbox, through the manager and through the daemon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from tests.manager.clocks import ManualClock
from tests.manager.conftest import OpenManager
from tests.manager.rigs import EmbeddedRig, MemoryRig
from tests.manager.waiting import until
from tests.rig.require import require
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import (
    InvalidOptionError,
    NotFoundError,
    NotRunningError,
    PortUnavailableError,
    SandboxLostError,
)
from yaosb_jupyter.tai.bytestream import ByteStream

DIALLED = [
    pytest.param(MemoryRig, id="memory"),
    pytest.param(EmbeddedRig, id="embedded", marks=pytest.mark.embedded),
]
"""The runtimes that tell `Capability.DIAL`."""

SERVER = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    connection = listener.accept()[0]
    got = 0
    quiet = connection.recv(1, socket.MSG_PEEK) == b"q"
    while data := connection.recv(65536):
        got += len(data)
        if not quiet:
            connection.sendall(data)
    print("got", got, flush=True)
    connection.close()
"""


class Served:
    """A sandbox with a server inside, by default an echo: its port, and its lines."""

    def __init__(self, sandbox: AsyncSandbox, program: str = SERVER) -> None:
        self.sandbox = sandbox
        self.stream = sandbox.stream(["python3", "-c", program])
        self._events = self.stream.__aiter__()
        self.port = 0

    async def line(self) -> str:
        seen = ""
        async with asyncio.timeout(20):
            while not seen.endswith("\n"):
                event = await anext(self._events)
                seen += getattr(event, "data", "")
        return seen


@pytest.fixture
async def served(manager: AsyncManager) -> AsyncIterator[Served]:
    served = Served(await manager.create("lab"))
    async with served.stream:
        served.port = int(await served.line())
        yield served


@pytest.fixture(autouse=True)
def _embedded_reaches_ports_by_namespaces(request: pytest.FixtureRequest) -> None:
    if "rig" in request.fixturenames and isinstance(request.getfixturevalue("rig"), EmbeddedRig):
        require("bubblewrap")


async def rest(connection: ByteStream) -> bytes:
    got = bytearray()
    async with asyncio.timeout(20):
        while data := await connection.receive():
            got += data
    return bytes(got)


@pytest.mark.parametrize("rig", DIALLED, indirect=True)
async def test_a_server_inside_is_reached(served: Served) -> None:
    data = bytes(range(256)) * 4096
    async with await served.sandbox.dial(served.port) as connection:
        sending = asyncio.ensure_future(send(connection, data))
        assert await rest(connection) == data
        await sending
    assert await served.line() == f"got {len(data)}\n"


async def send(connection: ByteStream, data: bytes) -> None:
    for start in range(0, len(data), 50_000):
        await connection.send(data[start : start + 50_000])
    await connection.send_eof()


@pytest.mark.parametrize("rig", DIALLED, indirect=True)
async def test_what_was_sent_before_the_close_arrives(served: Served) -> None:
    async with await served.sandbox.dial(served.port) as connection:
        await connection.send(b"quiet" * 2000)
    assert await served.line() == "got 10000\n"


HALF_CLOSING = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    connection = listener.accept()[0]
    connection.sendall(b"said")
    connection.shutdown(socket.SHUT_WR)
    print("got", connection.recv(100), flush=True)
    connection.close()
"""


@pytest.mark.parametrize("rig", DIALLED, indirect=True)
@pytest.mark.parametrize("seen", [b"", b"said"], ids=["before its end is seen", "after its end is seen"])
async def test_what_is_sent_to_one_that_says_no_more_arrives_too(manager: AsyncManager, seen: bytes) -> None:
    served = Served(await manager.create("lab"), HALF_CLOSING)
    async with served.stream:
        served.port = int(await served.line())
        for _ in range(30):
            async with await served.sandbox.dial(served.port) as connection:
                assert await connection.receive() == b"said"
                if seen:
                    assert await connection.receive() == b""
                await connection.send(b"still")
            assert await served.line() == "got b'still'\n"


@pytest.mark.parametrize("rig", DIALLED, indirect=True)
async def test_where_nothing_listens_it_is_said_so(served: Served) -> None:
    await served.stream.cancel(0)
    with pytest.raises(PortUnavailableError, match=f"port {served.port}: nothing listens") as caught:
        await served.sandbox.dial(served.port)
    assert caught.value.sandbox == "lab"
    assert caught.value.hint


@pytest.mark.parametrize("rig", DIALLED, indirect=True)
async def test_x15_a_sandbox_that_does_not_run_says_so(manager: AsyncManager) -> None:
    sandbox = await manager.create("lab")
    await sandbox.stop()
    with pytest.raises(NotRunningError):
        await sandbox.dial(80)
    await sandbox.remove()
    with pytest.raises(NotFoundError):
        await sandbox.dial(80)


@pytest.mark.parametrize("port", [0, -1, 65536])
async def test_a_bad_port_is_named(open_on_memory: OpenManager, port: int) -> None:
    sandbox = await (await open_on_memory()).create("lab")
    with pytest.raises(InvalidOptionError, match=f"port={port}"):
        await sandbox.dial(port)


@pytest.mark.parametrize("rig", DIALLED, indirect=True)
async def test_a_stop_ends_the_connections(served: Served) -> None:
    async with await served.sandbox.dial(served.port) as connection:
        await connection.send(b"one")
        assert await connection.receive() == b"one"
        await served.sandbox.stop(0)
        with suppress(PortUnavailableError, SandboxLostError):  # its server is killed first, or its link
            assert await rest(connection) == b""


@pytest.fixture
async def loopback_port() -> AsyncIterator[int]:
    """An echo server on the host's loopback, which is that of a sandbox of the memory runtime."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_m13_bytes_that_move_are_use(open_on_memory: OpenManager, loopback_port: int) -> None:
    clock = ManualClock()
    manager = await open_on_memory(clock=clock)
    sandbox = await manager.create("lab", idle_timeout="10m")
    async with await sandbox.dial(loopback_port) as connection:
        for _ in range(3):
            clock.advance(599)
            await connection.send(b"on")
            assert await connection.receive() == b"on"
            assert list(await manager.cleanup()) == []


async def test_m14_being_open_is_not_use(open_on_memory: OpenManager, loopback_port: int) -> None:
    clock = ManualClock()
    manager = await open_on_memory(clock=clock)
    sandbox = await manager.create("lab", idle_timeout="10m")
    async with await sandbox.dial(loopback_port) as connection:
        reading = asyncio.ensure_future(connection.receive())
        clock.advance(601)
        await manager.cleanup()
        await until(lambda: _is_empty(manager))
        reading.cancel()


async def _is_empty(manager: AsyncManager) -> bool:
    return not await manager.list()
