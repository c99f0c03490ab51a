"""More connections than there is room for: the manager's descriptors are not for whoever comes first."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from tests.proxy.conftest import Serve, head, says
from yaosb_jupyter.tai.proxy import server

ROOM = 4


@pytest.fixture(autouse=True)
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS", ROOM)


async def test_who_is_silent_keeps_nobody_out(serve: Serve, browser: httpx.AsyncClient) -> None:
    url = await serve(says(b"hello"))
    port = httpx.URL(url).port
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3 * ROOM)]
    assert (await browser.get(url)).text == "hello"
    async with asyncio.timeout(5):
        for reader, _ in silent[: 2 * ROOM]:
            assert await reader.read() == b""
    for _, writer in silent:
        writer.close()


async def test_who_is_busy_is_not_disturbed(serve: Serve, browser: httpx.AsyncClient) -> None:
    go = asyncio.Event()
    begun = asyncio.Semaphore(0)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        begun.release()
        await go.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
        await writer.drain()

    url = await serve(handle)
    busy = [asyncio.create_task(browser.get(url)) for _ in range(ROOM)]
    for _ in busy:
        await begun.acquire()
    refused = await browser.get(url)
    assert (refused.status_code, "Too many connections" in refused.text) == (503, True)
    go.set()
    assert [(await each).text for each in busy] == ["done"] * ROOM
