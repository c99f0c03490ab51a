"""An attachment that is given up before it is one leaves no connection."""

from __future__ import annotations

import asyncio

import pytest

from tests.connect.conftest import Listen, attach_to


@pytest.mark.parametrize("protocol", ["ws", "sse"])
async def test_a_cancelled_attachment_hangs_up(listen: Listen, protocol: str) -> None:
    asked = asyncio.Event()
    left = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()
        left.set()

    attaching = asyncio.ensure_future(attach_to(await listen(handle), protocol))
    async with asyncio.timeout(10):
        await asked.wait()
        attaching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attaching
        await left.wait()


@pytest.mark.parametrize("protocol", ["ws", "sse", "tcp"])
async def test_a_cancelled_read_loses_nothing(listen: Listen, protocol: str) -> None:
    """What comes later is read by the next."""
    go = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if protocol != "tcp":
            writer.write(await _greeting(reader, protocol))
        await go.wait()
        writer.write({"ws": b"\x81\x04word", "sse": b"data: word\n\n", "tcp": b"word"}[protocol])
        await reader.read(1)  # farewell, or the end

    async with asyncio.timeout(10), await attach_to(await listen(handle), protocol) as attached:
        reading = asyncio.ensure_future(attached.read())
        await asyncio.sleep(0.05)  # so that it waits, most likely
        reading.cancel()
        await asyncio.wait([reading])
        go.set()
        got = await attached.read()
        assert getattr(got, "data", got) in ("word", b"word")


async def _greeting(reader: asyncio.StreamReader, protocol: str) -> bytes:
    from websockets.utils import accept_key

    request = (await reader.readuntil(b"\r\n\r\n")).decode()
    if protocol == "sse":
        return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    accept = accept_key(request.partition("Sec-WebSocket-Key: ")[2].partition("\r")[0])
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket"
    return f"HTTP/1.1 101 Switching Protocols\r\n{upgrade}\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode()
