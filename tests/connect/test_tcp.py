"""Plain TCP."""

from __future__ import annotations

import asyncio

import pytest

from tests.connect.conftest import Listen, attach_to
from yaosb_jupyter.errors import ProtocolError


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
