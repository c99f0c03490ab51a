"""The end of a connection: told to everybody who waits, and waited for."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.connection.conftest import HELLO, Listen, opening, stuck
from yaosb_jupyter.guest import frames
from yaosb_jupyter.link import connection as link
from yaosb_jupyter.link.connection import Stream, dial_unix


async def test_a_lost_connection_ends_everything_that_waits(listen: Listen) -> None:
    cancelled = asyncio.Event()

    async def wait(stream: Stream) -> None:
        try:
            await stream.send_message({})
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    peer = await listen(wait)
    client = await dial_unix(peer.path, {})
    stream = client.open("wait")
    await stream.receive_message()
    sender = asyncio.create_task(stream.send(b"x" * 3 * frames.WINDOW))
    reader = asyncio.create_task(stream.receive())
    assert client._transport is not None
    client._transport.abort()
    await asyncio.wait_for(sender, 5)
    with pytest.raises(ConnectionError):
        await asyncio.wait_for(reader, 5)
    await asyncio.wait_for(cancelled.wait(), 5)
    with pytest.raises(ConnectionError):
        client.open("more")
    with pytest.raises(ConnectionError):
        await client.ping()


async def test_a_ping_under_way_fails_with_the_connection(listen: Listen) -> None:
    peer = await listen()
    client = await dial_unix(peer.path, {})
    ping = asyncio.create_task(client.ping())
    await asyncio.sleep(0)
    assert client._transport is not None
    client._transport.abort()
    with pytest.raises(ConnectionError):
        await ping


async def test_the_reason_of_the_end_is_told(listen: Listen) -> None:
    peer = await listen()
    client = await dial_unix(peer.path, {})
    stream = client.open("wait")
    await stream.receive_message()
    await peer.accepted[0].close("the daemon stops")
    with pytest.raises(ConnectionError, match="the daemon stops"):
        await stream.receive()


async def test_the_reason_of_the_end_is_told_as_far_as_one_reads(listen: Listen) -> None:
    peer = await listen()
    client = await dial_unix(peer.path, {})
    peer.accepted[0].write(frames.encode_json(frames.GOAWAY, 0, {"reason": "r" * 100_000}))
    await client.wait_closed()
    with pytest.raises(ConnectionError) as told:
        client.open("wait")
    assert len(str(told.value)) <= 1000


async def test_closing_waits_until_the_handlers_have_cleaned_up(listen: Listen) -> None:
    cleaned = False
    began = asyncio.Event()

    async def slow(stream: Stream) -> None:
        nonlocal cleaned
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)
            cleaned = True

    peer = await listen(slow)
    client = await dial_unix(peer.path, {})
    client.open("slow")
    await began.wait()
    await peer.accepted[0].close()
    assert cleaned
    await client.close()


async def test_closing_does_not_wait_for_a_side_that_does_not_read(
    listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "FLUSH_TIMEOUT", 0.05)
    peer = await listen()
    _reader, writer = await peer.raw(HELLO, *(opening(2 * n + 1, "flood", count=16) for n in range(10)))
    await peer.arrived.wait()
    await stuck(peer.accepted[0])
    await asyncio.wait_for(peer.accepted[0].close(), 5)
    writer.close()
