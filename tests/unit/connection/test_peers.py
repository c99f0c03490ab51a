"""Peers that break the rules harm nobody but themselves."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.connection.conftest import HELLO, Listen, Peer, opening, reply, serve_anything
from yaosb_jupyter.errors import AuthError, ProtocolError
from yaosb_jupyter.guest import frames
from yaosb_jupyter.link import connection as link
from yaosb_jupyter.link.connection import RemoteError, Stream, dial_unix

ENDED = HELLO + opening(1, "wait") + frames.encode(frames.EOF, 1)
BAD = {
    "no hello": frames.encode(frames.PING, 0),
    "rubbish": b"\xff" * 64,
    "a hello that is no JSON": frames.encode(frames.HELLO, 0, b"{"),
    "a hello that is no object": frames.encode(frames.HELLO, 0, b"[]"),
    "another major version": frames.encode_json(frames.HELLO, 0, {"major": 99}),
    "two hellos": HELLO + HELLO,
    "a stream of our numbers": HELLO + opening(2, "add"),
    "stream zero": HELLO + opening(0, "add"),
    "a stream opened twice": HELLO + opening(1, "wait") + opening(1, "wait"),
    "an open that is no JSON": HELLO + frames.encode(frames.OPEN, 1, b"["),
    "more than its credit": HELLO + opening(1, "wait") + frames.encode(frames.DATA, 1, b"x" * frames.MAX_PAYLOAD) * 2,
    "a credit of three bytes": HELLO + opening(1, "wait") + frames.encode(frames.CREDIT, 1, b"abc"),
    "ended twice": ENDED + frames.encode(frames.EOF, 1),
    "data after its end": HELLO
    + opening(1, "wait")
    + frames.encode(frames.EOF, 1)
    + frames.encode(frames.DATA, 1, b"x"),
    "a close from the caller": HELLO + opening(1, "wait") + frames.encode_json(frames.CLOSE, 1, {"result": {}}),
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
    reader, writer = await peer.raw(HELLO, opening(1, "add", a=1, b=1), late, frames.encode(frames.PING, 0, b"p"))
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
    reader, writer = await peer.raw(HELLO, opening(1, "add"))
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
    st.builds(opening, st.integers(0, 9), st.sampled_from(["echo", "add", "wait", "crash", "flood"]), count=st.just(1)),
    st.builds(frames.encode_credit, st.integers(0, 9), st.integers(0, 2**32 - 1)),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
