"""Streams over one connection: flow control, cancellation, the end, and peers that break the rules."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yaosb_jupyter.errors import AuthError, ProtocolError
from yaosb_jupyter.guest import frames
from yaosb_jupyter.link import connection as link
from yaosb_jupyter.link.connection import Connection, Handler, RemoteError, Stream, dial_unix

HELLO = frames.encode_json(frames.HELLO, 0, {"major": frames.MAJOR, "minor": 0, "features": []})


async def serve_anything(stream: Stream) -> None:
    """Operations that the tests call."""
    match stream.request["op"]:
        case "echo":
            while (item := await stream.receive()) is not None and item[0] != frames.EOF:
                await stream.send(item[1], item[0])
            stream.close({"echoed": True})
        case "add":
            stream.close({"sum": stream.request["a"] + stream.request["b"]})
        case "flood":
            for _ in range(stream.request["count"]):
                await stream.send(b"x" * 2**16)
        case "fail":
            stream.fail({"code": "NotFoundError", "message": "no such thing", "hint": "look again"})
        case "crash":
            raise ZeroDivisionError("a bug")
        case "wait":
            await stream.send_message({"waiting": True})
            await asyncio.Event().wait()


class Peer:
    """A listening end with a handler, and what connects to it."""

    def __init__(self, path: Path, handler: Handler | None, **options: Any) -> None:
        self.path = path
        self.handler = handler
        self.options = options
        self.accepted: list[Connection] = []
        self.arrived = asyncio.Event()

    def accept(self) -> Connection:
        connection = Connection(dialled=False, hello={"name": "peer"}, handler=self.handler, **self.options)
        self.accepted.append(connection)
        self.arrived.set()
        return connection

    async def raw(self, *data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection that says what it likes."""
        reader, writer = await asyncio.open_unix_connection(str(self.path))
        writer.write(b"".join(data))
        return reader, writer


Listen = Callable[..., Awaitable[Peer]]


@pytest.fixture
async def listen(tmp_path: Path) -> AsyncIterator[Listen]:
    async with contextlib.AsyncExitStack() as stack:

        async def begin(handler: Handler | None = serve_anything, **options: Any) -> Peer:
            peer = Peer(tmp_path / "s", handler, **options)
            server = await asyncio.get_running_loop().create_unix_server(peer.accept, str(peer.path))
            stack.callback(server.close)

            async def end() -> None:
                for connection in peer.accepted:
                    await connection.close()

            stack.push_async_callback(end)
            return peer

        yield begin


@pytest.fixture
async def client(listen: Listen) -> AsyncIterator[Connection]:
    peer = await listen()
    connection = await dial_unix(peer.path, {"name": "client"})
    yield connection
    await connection.close()


async def stuck(connection: Connection) -> None:
    """Returns when the other side has let the socket and the buffer before it fill up."""
    async with asyncio.timeout(5):
        while connection.writable:  # noqa: ASYNC110 - the transport's own state
            await asyncio.sleep(0)


async def reply(reader: asyncio.StreamReader) -> list[frames.Frame]:
    """All frames until the other side ends the connection."""
    return list(frames.Decoder().feed(await asyncio.wait_for(reader.read(), 5)))


# Calls


async def test_each_side_learns_the_hello_of_the_other(listen: Listen) -> None:
    peer = await listen()
    client = await dial_unix(peer.path, {"name": "client"})
    assert (await client.ready())["name"] == "peer"
    assert (await peer.accepted[0].ready())["name"] == "client"
    await client.close()


async def test_a_call_gives_its_result(client: Connection) -> None:
    assert await client.call("add", {"a": 1, "b": 2}) == {"sum": 3}


async def test_calls_do_not_wait_for_one_another(client: Connection) -> None:
    waiting = client.open("wait")
    assert await waiting.receive_message() == {"waiting": True}
    sums = await asyncio.gather(*(client.call("add", {"a": n, "b": n}) for n in range(100)))
    assert [answer["sum"] for answer in sums] == [2 * n for n in range(100)]


async def test_an_error_comes_with_its_fields(client: Connection) -> None:
    with pytest.raises(RemoteError, match="no such thing") as caught:
        await client.call("fail")
    assert (caught.value.code, caught.value.fields["hint"]) == ("NotFoundError", "look again")


async def test_a_handler_that_crashes_is_an_error_of_its_call_alone(client: Connection) -> None:
    with pytest.raises(RemoteError, match="ZeroDivisionError"):
        await client.call("crash")
    assert await client.call("add", {"a": 1, "b": 1}) == {"sum": 2}


async def test_a_handler_that_gives_nothing_closes_its_stream(client: Connection) -> None:
    assert await client.call("unknown") == {}


async def test_a_side_without_a_handler_refuses_streams(listen: Listen) -> None:
    peer = await listen(handler=None)
    client = await dial_unix(peer.path, {})
    with pytest.raises(RemoteError, match="no more streams"):
        await client.call("add")
    await client.close()


async def test_the_side_that_accepted_can_call_too(listen: Listen) -> None:
    peer = await listen()
    client = await dial_unix(peer.path, {}, serve_anything)
    assert await peer.accepted[0].call("add", {"a": 2, "b": 3}) == {"sum": 5}
    await client.close()


async def test_a_ping_is_answered(client: Connection) -> None:
    await asyncio.wait_for(client.ping(), 5)


# Flow


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


# Cancellation


async def test_cancelling_a_call_cancels_its_handler(listen: Listen) -> None:
    began, cancelled = asyncio.Event(), asyncio.Event()

    async def wait(stream: Stream) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    peer = await listen(wait)
    client = await dial_unix(peer.path, {})
    call = asyncio.create_task(client.call("wait"))
    await began.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(cancelled.wait(), 5)
    await client.close()


async def test_a_cancelled_stream_is_answered(client: Connection) -> None:
    stream = client.open("wait")
    await stream.receive_message()
    stream.cancel()
    with pytest.raises(RemoteError) as caught:
        await asyncio.wait_for(stream.result(), 5)
    assert caught.value.code == "Cancelled"


async def test_a_cancel_right_behind_the_open_is_answered_too(client: Connection) -> None:
    """The handler's task is cancelled before its first step."""
    stream = client.open("wait")
    stream.cancel()
    with pytest.raises(RemoteError) as caught:
        await asyncio.wait_for(stream.result(), 5)
    assert caught.value.code == "Cancelled"


# The end


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
    _reader, writer = await peer.raw(HELLO, *(_open(2 * n + 1, "flood", count=16) for n in range(10)))
    await peer.arrived.wait()
    await stuck(peer.accepted[0])
    await asyncio.wait_for(peer.accepted[0].close(), 5)
    writer.close()


# Peers that break the rules


def _open(stream: int, op: str, **arguments: Any) -> bytes:
    return frames.encode_json(frames.OPEN, stream, {"op": op, **arguments})


BAD = {
    "no hello": frames.encode(frames.PING, 0),
    "rubbish": b"\xff" * 64,
    "a hello that is no JSON": frames.encode(frames.HELLO, 0, b"{"),
    "a hello that is no object": frames.encode(frames.HELLO, 0, b"[]"),
    "another major version": frames.encode_json(frames.HELLO, 0, {"major": 99}),
    "two hellos": HELLO + HELLO,
    "a stream of our numbers": HELLO + _open(2, "add"),
    "stream zero": HELLO + _open(0, "add"),
    "a stream opened twice": HELLO + _open(1, "wait") + _open(1, "wait"),
    "an open that is no JSON": HELLO + frames.encode(frames.OPEN, 1, b"["),
    "more than its credit": HELLO + _open(1, "wait") + frames.encode(frames.DATA, 1, b"x" * frames.MAX_PAYLOAD) * 2,
    "a credit of three bytes": HELLO + _open(1, "wait") + frames.encode(frames.CREDIT, 1, b"abc"),
    "ended twice": HELLO + _open(1, "wait") + frames.encode(frames.EOF, 1) * 2,
    "data after its end": HELLO + _open(1, "wait") + frames.encode(frames.EOF, 1) + frames.encode(frames.DATA, 1, b"x"),
    "a close from the caller": HELLO + _open(1, "wait") + frames.encode_json(frames.CLOSE, 1, {"result": {}}),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
async def test_a_peer_that_breaks_the_protocol_is_told_so_and_cut_off(listen: Listen, data: bytes) -> None:
    peer = await listen()
    reader, writer = await peer.raw(data)
    *_, last = await reply(reader)
    assert last.kind == frames.GOAWAY
    assert frames.decode_json(last.payload)["code"] == "ProtocolError"
    writer.close()


async def test_others_are_served_while_a_peer_breaks_the_protocol(listen: Listen) -> None:
    peer = await listen()
    client = await dial_unix(peer.path, {})
    reader, writer = await peer.raw(BAD["rubbish"])
    await reply(reader)
    writer.close()
    assert await client.call("add", {"a": 1, "b": 1}) == {"sum": 2}
    await client.close()


async def test_frames_for_streams_that_have_ended_are_no_fault(listen: Listen) -> None:
    peer = await listen()
    late = frames.encode(frames.DATA, 1, b"late") + frames.encode(frames.CANCEL, 1) + frames.encode_credit(77, 5)
    reader, writer = await peer.raw(HELLO, _open(1, "add", a=1, b=1), late, frames.encode(frames.PING, 0, b"p"))
    decoder = frames.Decoder()
    seen: list[frames.Frame] = []
    while not any(frame.kind == frames.PONG for frame in seen):
        seen += decoder.feed(await asyncio.wait_for(reader.read(1000), 5))
    assert not any(frame.kind == frames.GOAWAY for frame in seen)
    writer.close()


async def test_a_peer_that_says_nothing_is_cut_off(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "HELLO_TIMEOUT", 0.05)
    peer = await listen()
    reader, writer = await peer.raw()
    (last,) = await reply(reader)
    assert "HELLO in time" in frames.decode_json(last.payload)["reason"]
    writer.close()


async def test_a_peer_that_asks_and_reads_no_answer_is_cut_off(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "FLUSH_TIMEOUT", 0.05)
    peer = await listen()
    _reader, writer = await peer.raw(HELLO)
    await peer.arrived.wait()
    connection = peer.accepted[0]
    ping = frames.encode(frames.PING, 0, b"x" * frames.MAX_PAYLOAD)
    with contextlib.suppress(ConnectionError):
        for _ in range(200):
            writer.write(ping)
            await writer.drain()
    await asyncio.wait_for(connection.wait_closed(), 5)
    with pytest.raises(ConnectionError):
        await writer.drain()
        writer.write(b"more")
        await writer.drain()
    writer.close()


async def test_a_peer_may_open_only_so_many_streams(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "MAX_STREAMS", 3)
    peer = await listen()
    client = await dial_unix(peer.path, {})
    waiting = [client.open("wait") for _ in range(3)]
    for stream in waiting:
        await stream.receive_message()
    with pytest.raises(RemoteError, match="no more streams"):
        await client.call("add", {"a": 1, "b": 1})
    waiting[0].cancel()
    with pytest.raises(RemoteError):
        await waiting[0].result()
    assert await client.call("add", {"a": 1, "b": 1}) == {"sum": 2}
    await client.close()


async def test_a_hello_that_is_refused_tells_why(listen: Listen) -> None:
    def check(hello: Any) -> None:
        if hello.get("secret") != "s":
            raise AuthError("the secret is wrong")

    peer = await listen(check=check)
    with pytest.raises(AuthError, match="the secret is wrong"):
        await dial_unix(peer.path, {"secret": "t"})
    client = await dial_unix(peer.path, {"secret": "s"})
    assert await client.call("add", {"a": 1, "b": 1}) == {"sum": 2}
    await client.close()


async def test_a_refused_peer_cannot_open_streams_behind_its_hello(listen: Listen) -> None:
    served = []

    async def handler(stream: Stream) -> None:
        served.append(stream.request)

    def check(hello: Any) -> None:
        raise AuthError("no")

    peer = await listen(handler, check=check)
    reader, writer = await peer.raw(HELLO, _open(1, "add"))
    await reply(reader)
    writer.close()
    assert served == []


async def test_another_version_is_told_to_the_one_who_dials(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    peer = await listen()
    with pytest.raises(ProtocolError, match="version 7"):
        await dial_unix(peer.path, {"major": 7})


frame_bytes = st.one_of(
    st.binary(max_size=40),
    st.builds(frames.encode, st.sampled_from(sorted(frames.KINDS)), st.integers(0, 9), st.binary(max_size=30)),
    st.builds(_open, st.integers(0, 9), st.sampled_from(["echo", "add", "wait", "crash", "flood"]), count=st.just(1)),
    st.builds(frames.encode_credit, st.integers(0, 9), st.integers(0, 2**32 - 1)),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(frame_bytes, max_size=30))
async def test_nothing_a_peer_sends_harms_the_others(tmp_path: Path, sent: list[bytes]) -> None:
    path = tmp_path / "fuzz"
    peer = Peer(path, serve_anything)
    server = await asyncio.get_running_loop().create_unix_server(peer.accept, str(path))
    client = await dial_unix(path, {})
    reader, writer = await peer.raw(HELLO, *sent)
    writer.write_eof()
    await asyncio.wait_for(reader.read(), 5)
    writer.close()
    assert await asyncio.wait_for(client.call("add", {"a": 1, "b": 1}), 5) == {"sum": 2}
    await client.close()
    for connection in peer.accepted:
        await asyncio.wait_for(connection.wait_closed(), 5)
    server.close()
