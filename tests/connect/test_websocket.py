"""WebSockets by the library's own protocol, against the library's server and against what is none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.frames import Frame, Opcode

from tests.connect.conftest import Listen, attach_to, head
from yaosb_jupyter.errors import InvalidOptionError, PortUnavailableError, ProtocolError
from yaosb_jupyter.tai.connect import websocket

Handle = Callable[[ServerConnection], Awaitable[None]]
Answer = Callable[..., Awaitable[int]]


@pytest.fixture
async def answer() -> AsyncIterator[Answer]:
    """A WebSocket server that does this, and its port."""
    async with AsyncExitStack() as stack:

        async def begin(handle: Handle, **options: Any) -> int:
            given = {"max_size": None, "ping_interval": None, **options}
            server = await stack.enter_async_context(serve(handle, "127.0.0.1", 0, **given))
            return int(next(iter(server.sockets)).getsockname()[1])

        yield begin


async def echo(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(message)


async def test_text_and_bytes_come_back(answer: Answer) -> None:
    port = await answer(echo)
    async with await attach_to(port, path="/chat?a=b") as socket:
        assert socket.url == f"ws://localhost:{port}/chat?a=b"
        assert (socket.close_code, socket.close_reason) == (None, "")
        await socket.write("wörd")
        await socket.write(b"\x00\xff")
        assert await socket.read() == "wörd"
        assert await socket.read() == b"\x00\xff"
    assert await socket.read() is None
    assert socket.close_code == 1000


async def test_n2_path_headers_subprotocols(answer: Answer) -> None:
    async def handle(connection: ServerConnection) -> None:
        request = connection.request
        assert request is not None
        await connection.send(f"{request.path} {request.headers['X-Mine']} {request.headers['Origin']}")

    port = await answer(handle, subprotocols=["b", "c"])
    headers = {"X-Mine": "yes", "Origin": "http://mine"}
    async with await attach_to(port, path="/x", headers=headers, subprotocols=["a", "b"]) as socket:
        assert socket.subprotocol == "b"
        assert await socket.read() == "/x yes http://mine"


async def test_n4_code_and_reason_of_a_close_are_told_both_ways(answer: Answer) -> None:
    heard: asyncio.Future[tuple[int | None, str | None]] = asyncio.get_running_loop().create_future()

    async def handle(connection: ServerConnection) -> None:
        if await connection.recv() == "close":
            await connection.close(4001, "enough")
            return
        await connection.wait_closed()
        heard.set_result((connection.close_code, connection.close_reason))

    port = await answer(handle)
    socket = await attach_to(port)
    await socket.write("close")
    assert [message async for message in socket] == []
    assert (socket.close_code, socket.close_reason) == (4001, "enough")
    with pytest.raises(ProtocolError, match="4001"):
        await socket.write("more")
    await socket.close()
    other = await attach_to(port)
    await other.write("stay")
    await other.close(4002, "bye")
    async with asyncio.timeout(5):
        assert await heard == (4002, "bye")


async def test_a_large_message_goes_both_ways(answer: Answer) -> None:
    message = bytes(range(256)) * 2**16
    async with await attach_to(await answer(echo)) as socket:
        sending = asyncio.ensure_future(socket.write(message))
        assert await socket.read() == message
        await sending


async def test_fragments_are_one_message(answer: Answer) -> None:
    async def handle(connection: ServerConnection) -> None:
        await connection.send(["wö", "r", "d"])
        await connection.send([b"by", b"tes"])

    async with await attach_to(await answer(handle)) as socket:
        assert [message async for message in socket] == ["wörd", b"bytes"]


async def test_pings_are_answered_while_nobody_reads(answer: Answer) -> None:
    answered = asyncio.Event()

    async def handle(connection: ServerConnection) -> None:
        for _ in range(3):
            await (await connection.ping())
        answered.set()
        await connection.wait_closed()

    async with asyncio.timeout(10), await attach_to(await answer(handle)):
        await answered.wait()


async def test_pings_are_answered_while_one_writes_and_the_server_does_not_read(answer: Answer) -> None:
    pinged = asyncio.Event()

    async def handle(connection: ServerConnection) -> None:
        connection.transport.pause_reading()
        await connection.ping()
        await connection.send("first")
        await pinged.wait()
        connection.transport.resume_reading()
        async for message in connection:
            await connection.send(str(len(message)))

    async with asyncio.timeout(20), await attach_to(await answer(handle)) as socket:
        writing = asyncio.ensure_future(socket.write(bytes(30 * 2**20)))
        assert await socket.read() == "first"
        pinged.set()
        await writing
        assert await socket.read() == str(30 * 2**20)


async def test_a_server_waits_for_who_does_not_read(answer: Answer) -> None:
    sent = 0
    stuck = asyncio.Event()

    async def handle(connection: ServerConnection) -> None:
        nonlocal sent
        try:
            while True:
                async with asyncio.timeout(1):
                    await connection.send(bytes(2**18))
                sent += 1
        except TimeoutError:
            stuck.set()

    async with asyncio.timeout(30), await attach_to(await answer(handle)) as socket:
        await stuck.wait()
        assert sent * 2**18 < 16 * 2**20
        assert await socket.read() == bytes(2**18)


async def test_a_message_that_is_too_large_is_refused(answer: Answer) -> None:
    async def handle(connection: ServerConnection) -> None:
        await connection.send(bytes(2 * 2**20))
        await connection.wait_closed()

    async with await attach_to(await answer(handle), max_message="1m") as socket:
        with pytest.raises(ProtocolError, match="max_message"):
            await socket.read()


async def test_a_connection_that_breaks_is_told(answer: Answer) -> None:
    async def handle(connection: ServerConnection) -> None:
        await connection.send("last")
        connection.transport.close()

    async with await attach_to(await answer(handle)) as socket:
        assert await socket.read() == "last"
        with pytest.raises(PortUnavailableError, match="broke"):
            await socket.read()
        assert socket.close_code == 1006


async def test_text_that_is_not_utf8_breaks_the_protocol(answer: Answer) -> None:
    async def handle(connection: ServerConnection) -> None:
        connection.protocol.send_frame(Frame(Opcode.TEXT, b"\xff"))
        connection.send_data()
        await connection.wait_closed()

    async with await attach_to(await answer(handle)) as socket:
        with pytest.raises(ProtocolError, match="not UTF-8"):
            await socket.read()


async def test_closing_it_ends_who_reads_though_the_server_says_nothing(
    listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "_CLOSE_PATIENCE", 0.2)
    socket = await attach_to(await listen(_accept_and(b"")))
    reading = asyncio.ensure_future(socket.read())
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await socket.close()
        assert await reading is None
    assert socket.close_code == 1006


@pytest.mark.parametrize(
    ("code", "reason"),
    [(1005, ""), (1006, ""), (999, ""), (5000, ""), (2000, ""), ("1000", ""), (1000, "x" * 124), (1000, None)],
)
async def test_a_farewell_that_may_not_be_said_is_refused(
    listen: Listen, monkeypatch: pytest.MonkeyPatch, code: Any, reason: Any
) -> None:
    monkeypatch.setattr(websocket, "_CLOSE_PATIENCE", 0.2)
    async with await attach_to(await listen(_accept_and(b"\x81\x02hi"))) as socket:
        with pytest.raises(InvalidOptionError):
            await socket.close(code, reason)
        assert await socket.read() == "hi"


async def test_a_server_that_says_farewell_and_stays_is_hung_up_on(
    listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "_CLOSE_PATIENCE", 0.2)
    socket = await attach_to(await listen(_accept_and(b"\x88\x02\x03\xe8")))
    async with asyncio.timeout(5):
        assert await socket.read() is None
    assert socket.close_code == 1000
    await socket.close()


def _accept_and(frames: bytes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    from websockets.utils import accept_key

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        key = request.partition("Sec-WebSocket-Key: ")[2].partition("\r")[0]
        upgrade = "Connection: Upgrade\r\nUpgrade: websocket"
        answer = f"HTTP/1.1 101 Switching Protocols\r\n{upgrade}\r\nSec-WebSocket-Accept: {accept_key(key)}\r\n\r\n"
        writer.write(answer.encode() + frames)
        while await reader.read(65536):
            pass
        await asyncio.Event().wait()

    return handle


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 8\r\n\r\nnot you!", "status 403 Forbidden.*not you!"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "status 200 OK.*hello"),
        (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "Accept"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "HTTP"),
    ],
)
async def test_what_takes_no_websocket_is_told(listen: Listen, said: bytes, told: str) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(said)

    with pytest.raises(ProtocolError, match=f"(?s){told}") as caught:
        await attach_to(await listen(handle), path="/chat")
    assert "/chat" in str(caught.value)
    assert caught.value.hint


async def test_n2_a_server_that_does_not_answer_in_time_is_told(listen: Listen) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    with pytest.raises(PortUnavailableError, match=r"within 0\.2 s"):
        await attach_to(await listen(handle), timeout="200ms")


async def test_where_nothing_listens_it_is_told() -> None:
    with pytest.raises(PortUnavailableError, match="port 1: nothing listens"):
        await attach_to(1)
