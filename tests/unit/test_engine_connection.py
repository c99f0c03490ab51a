"""A connection to an engine at the moment when a link takes it over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from yaosb_jupyter.tai.runtimes.docker.http import Connection

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Connected = Callable[[Serve], Awaitable[Connection]]


@pytest.fixture
async def connected(tmp_path: Path) -> AsyncIterator[Connected]:
    """To an engine that does as it is told."""
    servers: list[asyncio.Server] = []

    async def connect(serve: Serve) -> Connection:
        servers.append(await asyncio.start_unix_server(serve, tmp_path / "engine"))
        return Connection(*await asyncio.open_unix_connection(tmp_path / "engine"))

    yield connect
    for server in servers:
        server.close()
        await server.wait_closed()


class Listener(asyncio.Protocol):
    def __init__(self) -> None:
        self.heard = b""
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.heard += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


async def test_who_takes_it_over_gets_what_has_come_and_what_comes(connected: Connected) -> None:
    more = asyncio.Event()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"early")
        await more.wait()
        writer.write(b", late")
        writer.close()

    connection = await connected(serve)
    while not connection._reader._buffer:  # type: ignore[attr-defined] # noqa: ASYNC110 - the reader's own state
        await asyncio.sleep(0)
    listener = await connection.hand_over(Listener)
    more.set()
    async with asyncio.timeout(5):
        await listener.ended.wait()
    assert listener.heard == b"early, late"


async def test_nobody_takes_over_what_has_ended(connected: Connected) -> None:
    """He would wait for its end for ever, and at a sandbox's door keep a place that another one needs."""

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"exec failed: no more processes")
        writer.close()

    connection = await connected(serve)
    while not connection._reader._eof:  # type: ignore[attr-defined] # noqa: ASYNC110 - the reader's own state
        await asyncio.sleep(0)
    made: list[Listener] = []

    def make() -> Listener:
        made.append(Listener())
        return made[-1]

    with pytest.raises(ConnectionResetError, match="no more processes"):
        await connection.hand_over(make)
    assert not made
    await connection.aclose()


async def test_one_that_has_ended_can_be_closed(connected: Connected) -> None:
    """Closed with something left to say, which the other side took before it went."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    connection = await connected(serve)
    listener = await connection.hand_over(Listener)
    connection._writer.write(b"x" * 2**20)
    connection._writer.transport.close()
    async with asyncio.timeout(5):
        await listener.ended.wait()
    await connection.aclose()
