"""Browsers that end what they ask, or leave: the first are answered, what runs for the others ends."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.proxy.conftest import Serve, all_ended, head, raw, reports, says
from tests.rig.listening import Handle
from yaosb_jupyter.tai.proxy import exchange
from yaosb_jupyter.tai.proxy.server import Proxy


@pytest.fixture(autouse=True)
async def nothing_unhandled(proxy: Proxy) -> AsyncIterator[None]:
    """Whoever leaves is nothing to report."""
    with reports() as unhandled:
        yield
        await all_ended(proxy)
    assert unhandled == []


def asking(url: httpx.URL, *headers: str) -> bytes:
    return "\r\n".join([f"GET {url.path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def silent(left: asyncio.Event, begun: bytes = b"", asked: asyncio.Event | None = None) -> Handle:
    """An application that says ``begun`` and no more, until who asked has left."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        if asked is not None:
            asked.set()
        writer.write(begun)
        await reader.read()
        left.set()

    return handle


EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n:\n\n"


async def test_who_only_ends_what_it_asks_is_answered(serve: Serve) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        left = asyncio.create_task(reader.read())
        await asyncio.wait([left], timeout=0.5)
        assert not left.done()
        left.cancel()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    url = httpx.URL(await serve(handle))
    assert (await raw(url, asking(url), end=True)).endswith(b"hello")


async def test_all_that_was_asked_before_the_end_is_answered(serve: Serve) -> None:
    url = httpx.URL(await serve(says(b"hello")))
    assert (await raw(url, asking(url) * 3, end=True)).count(b"hello") == 3


async def test_who_ends_what_it_asks_is_told_that_nothing_came(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "SILENCE", 0.2)
    left = asyncio.Event()
    url = httpx.URL(await serve(silent(left)))
    assert b"did not answer within 0.2 seconds" in await raw(url, asking(url), end=True)
    async with asyncio.timeout(10):
        await left.wait()


async def test_a_browser_that_leaves_ends_a_silent_response(
    serve: Serve, browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "SILENCE", 0.2)
    left = asyncio.Event()
    async with browser.stream("GET", await serve(silent(left, EVENTS))) as response:
        assert await anext(response.aiter_bytes()) == b":\n\n"
    async with asyncio.timeout(10):
        await left.wait()


async def test_a_browser_that_leaves_ends_a_response_at_once_that_goes_on(
    serve: Serve, browser: httpx.AsyncClient
) -> None:
    left = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(EVENTS)
        ended = asyncio.create_task(reader.read())
        while not ended.done():
            writer.write(b":\n\n")
            await asyncio.wait([ended], timeout=0.05)
        left.set()

    async with browser.stream("GET", await serve(handle)) as response:
        await anext(response.aiter_bytes())
    async with asyncio.timeout(10):
        await left.wait()


@pytest.mark.parametrize("begun", [b"", EVENTS])
async def test_a_connection_that_breaks_ends_the_request_at_once(serve: Serve, begun: bytes) -> None:
    asked, left = asyncio.Event(), asyncio.Event()
    url = httpx.URL(await serve(silent(left, begun, asked)))
    reader, writer = await asyncio.open_connection("127.0.0.1", url.port)
    writer.write(asking(url))
    await asked.wait()
    if begun:
        await reader.readuntil(b":\n\n")
    reset = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
    writer.close()
    async with asyncio.timeout(10):
        await left.wait()


async def test_a_body_that_is_none_ends_a_response_that_has_begun(serve: Serve) -> None:
    left = asyncio.Event()
    url = httpx.URL(await serve(silent(left, EVENTS)))
    reader, writer = await asyncio.open_connection("127.0.0.1", url.port)
    writer.write(asking(url, "Transfer-Encoding: chunked"))
    await reader.readuntil(b":\n\n")
    writer.write(b"zz\r\n")
    async with asyncio.timeout(10):
        assert not (await reader.read()).endswith(b"0\r\n\r\n")
        await left.wait()
    writer.close()
