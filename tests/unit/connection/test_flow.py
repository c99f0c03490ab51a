"""Streams over one connection: in order, with bounded memory, each at its own pace."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.connection.conftest import HELLO, Listen, stuck
from yaosb_jupyter.guest import frames
from yaosb_jupyter.link import connection as link
from yaosb_jupyter.link.connection import Connection, RemoteError, Stream, dial_unix


async def test_all_bytes_come_back_in_order(client: Connection) -> None:
    stream = client.open("echo")
    sent = [bytes([n % 256]) * (n * 1000 + 1) for n in range(100)]

    async def send() -> None:
        for data in sent:
            await stream.send(data)
        await stream.send_eof()

    sender = asyncio.create_task(send())
    received = b""
    while (item := await stream.receive()) is not None:
        received += item[1]
    await sender
    assert received == b"".join(sent)
    assert await stream.result() == {"echoed": True}


async def test_a_slow_reader_stops_its_own_stream_only_and_memory_is_bounded(listen: Listen) -> None:
    """FAULTS X9."""
    sent = 0

    async def flood(stream: Stream) -> None:
        nonlocal sent
        while stream.request["op"] == "flood":
            await stream.send(b"x" * 2**16)
            sent += 2**16
        stream.close({})

    peer = await listen(flood)
    client = await dial_unix(peer.path, {})
    slow = client.open("flood")
    for _ in range(50):
        await client.call("other")
        await asyncio.wait_for(client.ping(), 5)
    assert sent <= frames.WINDOW
    assert slow.unread <= frames.WINDOW
    taken = 0
    while taken < 5 * frames.WINDOW:
        item = await slow.receive()
        assert item is not None
        taken += len(item[1])
    assert sent <= taken + frames.WINDOW
    await client.close()


async def test_a_reader_that_stops_reading_the_socket_stops_the_writers(listen: Listen) -> None:
    peer = await listen()
    opens = [frames.encode_json(frames.OPEN, 2 * n + 1, {"op": "flood", "count": 16}) for n in range(40)]
    _reader, writer = await peer.raw(HELLO, *opens)
    await peer.arrived.wait()
    connection = peer.accepted[0]
    await stuck(connection)
    for _ in range(100):
        await asyncio.sleep(0)
    transport = connection._transport
    assert transport is not None
    assert transport.get_write_buffer_size() <= link.HIGH_WATER + frames.MAX_PAYLOAD
    writer.transport.abort()
    await connection.wait_closed()


async def test_messages_as_large_as_allowed_never_wait_for_ever(client: Connection) -> None:
    stream = client.open("echo")
    text = "x" * (frames.WINDOW // 2 - 100)

    async def both() -> None:
        for _ in range(10):
            await stream.send_message({"text": text})
            assert await stream.receive_message() == {"text": text}

    await asyncio.wait_for(both(), 10)


async def test_a_message_over_the_limit_is_refused_at_once(client: Connection) -> None:
    with pytest.raises(frames.FrameError, match="over the limit"):
        await client.open("echo").send_message({"text": "x" * (frames.WINDOW // 2)})


async def test_data_after_the_end_of_a_direction_is_not_sent(client: Connection) -> None:
    stream = client.open("echo")
    await stream.send(b"one")
    await stream.send_eof()
    await stream.send_eof()
    await stream.send(b"two")
    assert await stream.receive() == (frames.DATA, b"one")
    assert await stream.receive() is None


async def test_a_writer_is_released_when_the_other_side_closes(listen: Listen) -> None:
    async def refuse(stream: Stream) -> None:
        await stream.receive()
        stream.fail({"code": "PathError", "message": "no"})

    peer = await listen(refuse)
    client = await dial_unix(peer.path, {})
    stream = client.open("write")
    await asyncio.wait_for(stream.send(b"x" * 20 * frames.WINDOW), 5)
    with pytest.raises(RemoteError, match="no"):
        await stream.result()
    await client.close()
