"""Plain TCP."""

from __future__ import annotations

import asyncio

import pytest

from tests.connect.conftest import Listen, attach_to
from yaosb_jupyter.errors import ProtocolError, UnavailableError
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.connect.attach import attach


async def test_n2_bytes_go_both_ways_to_the_end(listen: Listen) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readexactly(8)).upper())

    port = await listen(handle)
    async with await attach_to(port, "tcp") as connection:
        assert connection.url == f"tcp://localhost:{port}"
        await connection.write("text")
        await connection.write(b"data")
        assert [data async for data in connection] == [b"TEXTDATA"]
        assert connection.close_reason == "the other side has ended it"
    assert await connection.read() is None
    with pytest.raises(ProtocolError, match="closed here"):
        await connection.write("more")


async def test_closing_it_ends_who_reads(listen: Listen) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    connection = await attach_to(await listen(handle), "tcp")
    reading = asyncio.ensure_future(connection.read())
    await asyncio.sleep(0)
    await connection.close()
    async with asyncio.timeout(5):
        assert await reading is None
    assert connection.close_reason == "closed here"


class BrokenStream(ByteStream):
    """Stands in for a connection that breaks while it is read, as one through a daemon that is killed."""

    async def receive(self) -> bytes:
        raise UnavailableError("the daemon has ended")

    async def send(self, data: bytes) -> None:
        """Dropped."""

    async def send_eof(self) -> None:
        """Dropped."""

    async def aclose(self) -> None:
        """Nothing is left."""


async def test_once_it_is_known_to_be_broken_writing_says_so_too() -> None:
    async def dial() -> ByteStream:
        return BrokenStream()

    async with await attach(dial, "lab", 80, "tcp", {}) as connection:
        await connection.write("not known yet")
        for call in (connection.read, lambda: connection.write("lost")):
            with pytest.raises(UnavailableError, match="the daemon has ended"):
                await call()
