"""Links: how long they lead somewhere; and the listener behind them."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from tests.proxy.conftest import Clock, Serve, free_port, head, says, target
from yaosb_jupyter.errors import InvalidOptionError, NotAvailableError
from yaosb_jupyter.tai.proxy.server import Proxy
from yaosb_jupyter.tai.proxy.tickets import LIFETIME


async def test_a_link_is_the_same_until_its_time_is_over(
    proxy: Proxy, clock: Clock, browser: httpx.AsyncClient
) -> None:
    free = await free_port()
    url = await proxy.url(target(free))
    assert await proxy.url(target(free)) == url
    assert await proxy.url(target(free, uid="two")) != url
    assert await proxy.url(target(free + 1)) != url
    clock.now += LIFETIME - 1
    assert (await browser.get(url)).status_code == 502
    assert await proxy.url(target(free)) == url  # and its time begins anew
    clock.now += LIFETIME - 1
    assert (await browser.get(url)).status_code == 502
    clock.now += 1
    assert (await browser.get(url)).status_code == 404
    assert await proxy.url(target(free)) != url


async def test_a_revoked_link_leads_nowhere_and_what_goes_on_by_it_ends(
    serve: Serve, proxy: Proxy, browser: httpx.AsyncClient
) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nbegun")
        await reader.read()

    url = await serve(handle)
    other = await proxy.url(target(await free_port(), uid="two"))
    async with browser.stream("GET", url) as response:
        pieces = response.aiter_bytes()
        assert await anext(pieces) == b"begun"
        proxy.revoke("one")
        with pytest.raises(httpx.RemoteProtocolError):
            await anext(pieces)
    assert (await browser.get(url)).status_code == 404
    assert (await browser.get(other)).status_code == 502


async def test_a_link_without_its_slash_leads_there(serve: Serve, browser: httpx.AsyncClient) -> None:
    url = (await serve(says(b"hello"))).rstrip("/")
    response = await browser.get(f"{url}?a=b", follow_redirects=True)
    assert response.text == "hello"
    assert str(response.url) == f"{url}/?a=b"


async def test_links_cannot_be_guessed(proxy: Proxy) -> None:
    tokens = {httpx.URL(await proxy.url(target(port))).path.strip("/") for port in range(1, 50)}
    assert len(tokens) == 49
    assert all(len(token) == 43 for token in tokens)


@pytest.mark.parametrize("path", ["/a\r\nHost: other", "/\x00", 7])
async def test_a_bad_path_is_named(proxy: Proxy, path: str) -> None:
    with pytest.raises(InvalidOptionError, match="path="):
        await proxy.url(target(80), path)


# The listener


async def test_it_listens_on_the_loopback_only_and_tells_that_it_is_up(
    proxy: Proxy, browser: httpx.AsyncClient
) -> None:
    health = await proxy.healthz()
    assert health.address.startswith("http://127.0.0.1:")
    assert health.links == 0
    response = await browser.get(f"{health.address}/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})
    assert (await proxy.url(target(80))).startswith(health.address)
    assert (await proxy.healthz()).links == 1


async def test_it_is_started_when_it_is_needed_and_ends_when_it_is_closed(clock: Clock) -> None:
    proxy = Proxy(clock)
    urls = await asyncio.gather(*(proxy.url(target(80)) for _ in range(10)))
    assert len(set(urls)) == 1
    port = httpx.URL(urls[0]).port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await proxy.close()
    assert await reader.read() == b""
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
    with pytest.raises(NotAvailableError):
        await proxy.url(target(80))
    await proxy.close()


async def test_it_is_not_started_for_nothing(proxy: Proxy) -> None:
    proxy.revoke("one")
    assert proxy._server is None
