"""Broken answers and broken requests: each costs its own connection, and nothing is left unhandled."""

from __future__ import annotations

import asyncio
import random

import httpx
import pytest

from tests.proxy.conftest import Serve, all_ended, target
from yaosb_jupyter.tai.proxy.server import Proxy

ANSWERS = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"HTTP/1.0 302 Found\r\nLocation: /x\r\nSet-Cookie: a\r\n\r\nuntil the end",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x02hi",
]
REQUESTS = [
    b"GET /TOKEN/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /TOKEN/a?b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
    b"PUT /TOKEN/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"GET /TOKEN/ HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x80abcd",
    b"GET /healthz HTTP/1.0\r\n\r\n",
]
SPLINTERS = [b"\r\n", b"\0", b"\xff", b":", b" ", b"999999999999", b"-1", b"chunked", b"Content-Length: 1\r\n", b""]


def mutated(random_: random.Random, text: bytes) -> bytes:
    """``text`` with up to three splinters in it, perhaps cut off."""
    for _ in range(random_.randrange(4)):
        start = random_.randrange(len(text) + 1)
        text = text[:start] + random_.choice(SPLINTERS) + text[start + random_.randrange(6) :]
    return text[: random_.randrange(len(text) + 1)] if random_.random() < 0.3 else text


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_either_side_says_the_proxy_goes_on(serve: Serve, proxy: Proxy, seed: int) -> None:
    unhandled: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    random_ = random.Random(seed)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(mutated(random_, random_.choice(ANSWERS)))
        if random_.random() < 0.1:
            writer.transport.abort()

    url = httpx.URL(await serve(handle))
    token = url.path.strip("/").encode()
    for _ in range(100):
        request = mutated(random_, random_.choice(REQUESTS)).replace(b"TOKEN", token)
        reader, writer = await asyncio.open_connection("127.0.0.1", url.port)
        writer.write(request)
        writer.write_eof()
        async with asyncio.timeout(20):
            try:
                answer = await reader.read()
            except ConnectionError:
                answer = b""
        writer.close()
        assert answer == b"" or answer.startswith(b"HTTP/1.1 "), (request, answer)
        assert b"set-cookie" not in answer.partition(b"\r\n\r\n")[0].lower()
    assert (await proxy.healthz()).links == 1
    await all_ended(proxy)
    assert unhandled == []
    assert (await proxy.url(target(1))).startswith("http://127.0.0.1:")
