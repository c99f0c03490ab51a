"""WebSocket, events and TCP to nginx in a sandbox, through a port that is published and one that is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from websockets.asyncio.client import connect

from tests.images.serving import served
from yaosb_jupyter import AsyncManager
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.images.catalogue import TEST

pytestmark = pytest.mark.docker

PORTS = pytest.mark.parametrize("port", [3000, 3001], ids=["published", "unpublished"])
EVENTS = [f"event-{number}" for number in range(5)]


@pytest.fixture
async def sandbox(manager: AsyncManager) -> AsyncIterator[AsyncSandbox]:
    sandbox = await manager.create("web", image=TEST.full_name, ports=[3000], network="bridge")
    assert [mapping.container_port for mapping in sandbox.last_info.ports] == [3000]
    await served(sandbox, 3000)
    yield sandbox
    await sandbox.close()


@PORTS
async def test_what_is_attached(sandbox: AsyncSandbox, port: int) -> None:
    async with asyncio.timeout(30):
        async with await sandbox.attach(port, path="/ws") as socket:
            for message in ("text", b"\x00bytes", "long" * 100_000):
                await socket.write(message)
                assert await socket.read() == message
        async with await sandbox.attach(port, "sse", path="/sse") as stream:
            events = [await stream.read() for _ in range(5)]
            assert [event.data for event in events if event is not None] == EVENTS
        async with await sandbox.attach(port, "tcp") as connection:
            await connection.write("GET / HTTP/1.0\r\n\r\n")
            assert b"".join([data async for data in connection]).endswith(b"sandbox-test\n")


@PORTS
async def test_what_is_shown_by_a_url(sandbox: AsyncSandbox, port: int) -> None:
    url = await sandbox.proxy(port)
    async with httpx.AsyncClient(trust_env=False, timeout=20) as browser:
        assert (await browser.get(url)).text == "sandbox-test\n"
        async with browser.stream("GET", f"{url}sse") as response:
            lines = [line async for line in response.aiter_lines()]
    assert [line.removeprefix("data: ") for line in lines if line.startswith("data: ")] == EVENTS
    async with connect(url.replace("http", "ws") + "ws", proxy=None, max_size=None) as socket:
        await socket.send("word" * 1_000_000)  # more than most proxies let through at once
        assert await socket.recv() == "word" * 1_000_000
