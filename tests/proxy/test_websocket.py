"""WebSockets through the proxy, with the websockets library at both ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosedError, ConnectionClosedOK, InvalidStatus

from tests.proxy.conftest import Serve, head, says, target
from yaosb_jupyter.tai.proxy.server import Proxy

Handle = Callable[[ServerConnection], Awaitable[None]]
Listen = Callable[..., Awaitable[str]]


@pytest.fixture
async def listen(proxy: Proxy) -> AsyncIterator[Listen]:
    """Listens for WebSockets and gives the proxied URL."""
    async with AsyncExitStack() as stack:

        async def begin(handle: Handle, **options: object) -> str:
            server = await stack.enter_async_context(serve(handle, "127.0.0.1", 0, max_size=None, **options))
            url = await proxy.url(target(next(iter(server.sockets)).getsockname()[1]))
            return url.replace("http://", "ws://")

        yield begin


async def echo(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(message)


async def test_messages_go_both_ways(listen: Listen) -> None:
    async with connect(await listen(echo), proxy=None) as socket:
        await socket.send("text")
        assert await socket.recv() == "text"
        await socket.send(b"\x00bytes")
        assert await socket.recv() == b"\x00bytes"
        await (await socket.ping())


async def test_n4_a_message_may_be_of_any_size(listen: Listen) -> None:
    message = bytes(range(256)) * 2**17  # 32 MiB
    async with connect(await listen(echo), proxy=None, max_size=None) as socket:
        sending = asyncio.ensure_future(socket.send(message))
        assert await socket.recv() == message
        await sending


async def test_n4_subprotocols_are_chosen_by_the_application(listen: Listen) -> None:
    url = await listen(echo, subprotocols=["two", "three"])
    async with connect(url, proxy=None, subprotocols=["one", "two"]) as socket:
        assert socket.subprotocol == "two"


async def test_n4_the_code_and_reason_of_a_close_pass_both_ways(listen: Listen) -> None:
    heard: asyncio.Future[tuple[int, str]] = asyncio.get_running_loop().create_future()

    async def handle(connection: ServerConnection) -> None:
        if await connection.recv() == "close":
            await connection.close(4001, "enough")
            return
        await connection.wait_closed()
        heard.set_result((connection.close_code or 0, connection.close_reason or ""))

    url = await listen(handle)
    async with connect(url, proxy=None) as socket:
        await socket.send("close")
        with pytest.raises(ConnectionClosedError):
            await socket.recv()
        assert (socket.close_code, socket.close_reason) == (4001, "enough")
    async with connect(url, proxy=None) as socket:
        await socket.send("wait")
        await socket.close(4002, "bye")
    async with asyncio.timeout(10):
        assert await heard == (4002, "bye")


async def test_the_application_sees_its_own_origin(listen: Listen) -> None:
    """As browsers tell it of a page whose origin is nobody's; servers check it against their name."""
    url = await listen(echo, origins=None)
    seen: list[tuple[str, str]] = []

    async def handle(connection: ServerConnection) -> None:
        assert connection.request is not None
        seen.append((connection.request.headers["Origin"], connection.request.headers["Host"]))

    url = await listen(handle)
    async with connect(url, proxy=None, origin="null") as socket:
        with pytest.raises(ConnectionClosedOK):
            await socket.recv()
    origin, host = seen[0]
    assert origin == f"http://{host}"


async def test_what_the_application_refuses_is_passed_on(serve: Serve) -> None:
    url = (await serve(says(b"not you", status="403 Forbidden"))).replace("http://", "ws://")
    with pytest.raises(InvalidStatus) as caught:
        async with connect(url, proxy=None):
            pass
    assert caught.value.response.status_code == 403
    assert caught.value.response.body == b"not you"


async def test_a_connection_that_breaks_is_seen_to(listen: Listen) -> None:
    async def handle(connection: ServerConnection) -> None:
        connection.transport.abort()

    async with connect(await listen(handle), proxy=None) as socket:
        with pytest.raises(ConnectionClosedError):
            await socket.recv()
        assert socket.close_code == 1006


async def test_a_browser_that_leaves_ends_it(listen: Listen) -> None:
    left = asyncio.Event()

    async def handle(connection: ServerConnection) -> None:
        await connection.wait_closed()
        left.set()

    socket = await connect(await listen(handle), proxy=None)
    socket.transport.abort()
    async with asyncio.timeout(15):
        await left.wait()
    await socket.wait_closed()


async def test_what_comes_right_behind_the_switch_arrives(serve: Serve) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nraw")
        writer.write(await reader.readexactly(5))

    url = httpx.URL(await serve(handle))
    reader, writer = await asyncio.open_connection("127.0.0.1", url.port)
    request = f"GET {url.path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nearly"
    writer.write(request.encode())
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 101 ")
    assert answer.endswith(b"rawearly")
