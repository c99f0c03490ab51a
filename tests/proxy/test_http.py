"""Requests and responses through the proxy, streaming both ways."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.proxy.conftest import Serve, free_port, head, raw, says, target
from yaosb_jupyter.errors import NotAvailableError, NotRunningError
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.proxy import exchange
from yaosb_jupyter.tai.proxy.server import Proxy
from yaosb_jupyter.tai.proxy.tickets import Target

MIB = 2**20


async def test_a_request_and_its_response(serve: Serve, browser: httpx.AsyncClient) -> None:
    heads: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await head(reader))
        writer.write(b"HTTP/1.1 201 Made\r\nX-Mine: yes\r\nSet-Cookie: a=b\r\nContent-Length: 5\r\n\r\nhello")

    url = await serve(handle, "/a b/é?q=1&r=%20#part")
    response = await browser.get(url, headers={"Cookie": "_xsrf=secret", "Authorization": "Bearer mine"})
    assert (response.status_code, response.reason_phrase, response.text) == (201, "Made", "hello")
    assert response.headers["x-mine"] == "yes"
    assert response.headers["content-security-policy"] == "sandbox allow-scripts allow-forms allow-popups"
    assert "set-cookie" not in response.headers
    request = heads[0].decode().lower()
    assert request.startswith("get /a%20b/%c3%a9?q=1&r=%20 http/1.1\r\n")
    assert "authorization: bearer mine" in request
    assert "cookie" not in request
    assert "secret" not in request


async def test_one_connection_serves_many_requests(serve: Serve) -> None:
    url = await serve(says(b"ok"))
    async with httpx.AsyncClient(trust_env=False, limits=httpx.Limits(max_connections=1)) as browser:
        for method in ("GET", "HEAD", "POST", "DELETE") * 3:
            response = await browser.request(method, url, content=b"body" if method == "POST" else None)
            assert response.status_code == 200
            assert response.headers["content-length"] == "2"


async def test_requests_sent_before_the_answers_get_theirs_in_turn(serve: Serve) -> None:
    url = httpx.URL(await serve(says(b"answer")))
    reader, writer = await asyncio.open_connection("127.0.0.1", url.port)
    request = f"GET {url.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    writer.write(request * 4 + request.replace(b"localhost\r\n", b"localhost\r\nConnection: close\r\n"))
    assert (await reader.read()).count(b"answer") == 5
    writer.close()


async def test_n4_events_come_one_by_one(serve: Serve, browser: httpx.AsyncClient) -> None:
    """Nothing is buffered: each event is waited for before the next is sent."""
    seen = asyncio.Semaphore(0)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")  # until the connection ends
        for number in range(5):
            writer.write(b"data: event-%d\n\n" % number)
            await seen.acquire()

    async with browser.stream("GET", await serve(handle)) as response:
        assert response.headers["content-type"] == "text/event-stream"
        got = []
        async for piece in response.aiter_bytes():
            got.append(piece)
            seen.release()
    assert got == [b"data: event-%d\n\n" % number for number in range(5)]


async def test_chunked_uploads_stream(serve: Serve, browser: httpx.AsyncClient) -> None:
    arrived = asyncio.Semaphore(0)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert b"transfer-encoding: chunked" in (await head(reader)).lower()
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
            arrived.release()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")

    async def body() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b"piece"
            await arrived.acquire()

    assert (await browser.post(await serve(handle), content=body())).text == "done"


async def test_a_large_upload_and_a_large_download_arrive_whole(serve: Serve, browser: httpx.AsyncClient) -> None:
    data = bytes(range(256)) * (32 * MIB // 256)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        body = await reader.readexactly(len(data))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
        writer.write(body)
        await writer.drain()

    response = await browser.post(await serve(handle), content=data)
    assert response.content == data


async def test_a_browser_that_does_not_read_holds_the_application_up(serve: Serve, browser: httpx.AsyncClient) -> None:
    written = 0
    stuck = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.transport.set_write_buffer_limits(0)
        try:
            while True:
                async with asyncio.timeout(1):
                    writer.write(bytes(MIB))
                    await writer.drain()
                written += 1
        except TimeoutError:
            stuck.set()

    async with asyncio.timeout(30), browser.stream("GET", await serve(handle)):
        await stuck.wait()
    assert written < 32


async def test_a_redirect_is_followed_below_the_prefix(serve: Serve, browser: httpx.AsyncClient) -> None:
    url = await serve(says(b"", "Location: ../../there", status="302 Found"), "/a/b?c=/d/e")
    assert (await browser.get(url)).headers["location"] == httpx.URL(url).path.removesuffix("/a/b") + "/there"


async def test_an_absolute_target_is_understood(serve: Serve) -> None:
    """Its authority is what counts, whatever the header says."""
    url = httpx.URL(await serve(says(b"hello")))
    answer = await raw(url, f"GET {url} HTTP/1.1\r\nHost: localhost:1\r\nConnection: close\r\n\r\n".encode())
    assert answer.endswith(b"hello")
    strange = f"GET http://example.org{url.path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert (await raw(url, strange.encode())).startswith(b"HTTP/1.1 421 ")


async def test_a_response_whose_length_is_told_twice_is_passed_whole(serve: Serve) -> None:
    """By its chunks; they may be more than the length tells, or less."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        lengths = b"Content-Length: 4\r\nTransfer-Encoding: chunked"
        writer.write(b"HTTP/1.1 200 OK\r\n%s\r\n\r\n5\r\nhello\r\n0\r\n\r\n" % lengths)

    url = httpx.URL(await serve(handle))
    answer = await raw(url, f"GET {url.path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert answer.endswith(b"5\r\nhello\r\n0\r\n\r\n")
    assert b"content-length" not in answer.lower()


async def test_an_answer_before_the_body_was_sent_is_read(serve: Serve) -> None:
    url = httpx.URL(await serve(says(b"too much", status="413 Content Too Large")))
    reader, writer = await asyncio.open_connection("127.0.0.1", url.port)
    request = f"POST {url.path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {MIB}\r\n\r\n".encode()
    writer.write(request + b"the first of many")
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert answer.endswith(b"too much")


async def test_a_response_that_breaks_off_is_seen_to(serve: Serve, browser: httpx.AsyncClient) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")

    with pytest.raises(httpx.RemoteProtocolError):
        await browser.get(await serve(handle))


async def test_a_page_may_ask_for_what_it_likes(serve: Serve, browser: httpx.AsyncClient) -> None:
    """Its origin is null, so a browser asks first; the application is not bothered."""
    url = await serve(says(b"never asked", status="405 No"))
    asked = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "content-type,x-mine"}
    response = await browser.options(url, headers={"Origin": "null", **asked})
    assert response.status_code == 204
    assert response.headers["access-control-allow-origin"] == "null"
    assert response.headers["access-control-allow-methods"] == "PUT"
    assert response.headers["access-control-allow-headers"] == "content-type,x-mine"


# What it refuses


async def test_n13_a_request_whose_length_is_told_twice_is_refused(serve: Serve) -> None:
    """Else whoever listens may find another request in its body. Nothing behind it is read."""
    url = httpx.URL(await serve(says(b"smuggled")))
    lengths = "Content-Length: 5\r\nTransfer-Encoding: chunked"
    request = f"POST {url.path} HTTP/1.1\r\nHost: localhost\r\n{lengths}\r\n\r\n0\r\n\r\n"
    follower = f"GET {url.path} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = await raw(url, (request + follower).encode())
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"connection: close" in answer.lower()
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"smuggled" not in answer


@pytest.mark.parametrize("size", ["zz", "-1", "f" * 21, ""])
async def test_a_body_that_is_none_is_refused(serve: Serve, size: str) -> None:
    left = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        left.set()

    url = httpx.URL(await serve(handle))
    start = f"POST {url.path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert (await raw(url, f"{start}{size}\r\nabc\r\n0\r\n\r\n".encode())).startswith(b"HTTP/1.1 400 ")
    async with asyncio.timeout(10):
        await left.wait()


async def test_a_head_without_end_is_told_to_be_too_large(serve: Serve) -> None:
    url = httpx.URL(await serve(says(b"hello")))
    start = f"GET {url.path} HTTP/1.1\r\nHost: localhost\r\nX: "
    answer = await raw(url, start.encode() + b"a" * 200_000 + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b"up to 64 KiB" in answer


@pytest.mark.parametrize(
    "host", ["example.org", "127.0.0.1.example.org", "localhost.example.org:80", "0.0.0.0", "169.254.169.254", ""]
)
async def test_n13_another_name_for_this_address_is_refused(
    serve: Serve, browser: httpx.AsyncClient, host: str
) -> None:
    url = await serve(says(b"secret"))
    response = await browser.get(url, headers={"Host": host})
    assert response.status_code == 421
    assert "secret" not in response.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9000", "[::1]:80", "127.0.0.1"])
async def test_a_forwarded_port_of_the_loopback_is_served(serve: Serve, browser: httpx.AsyncClient, host: str) -> None:
    url = await serve(says(b"hello"))
    assert (await browser.get(url, headers={"Host": host})).text == "hello"


@pytest.mark.parametrize("path", ["/", "/" + "x" * 43 + "/", "/x/", "/healthz/", "http://127.0.0.1:1/"])
async def test_n5_no_path_but_that_of_a_ticket_leads_anywhere(
    proxy: Proxy, browser: httpx.AsyncClient, path: str
) -> None:
    port = httpx.URL(await proxy.url(target(9))).port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 404 ")
    assert b"Ask for it again" in answer


async def test_n5_nothing_in_a_request_moves_its_target(serve: Serve, browser: httpx.AsyncClient) -> None:
    heads: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await head(reader))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    url = await serve(handle, "/http://other:1/")
    headers = {"X-Forwarded-Host": "other:1", "Forwarded": "host=other", "X-Forwarded-Prefix": "/other"}
    assert (await browser.get(url, headers=headers)).status_code == 200
    assert heads[0].startswith(b"GET /http://other:1/ ")
    assert b"X-Forwarded-Host: other" not in heads[0]


async def test_connect_is_no_way_out(proxy: Proxy) -> None:
    port = httpx.URL(await proxy.url(target(9))).port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 404 ")
    writer.close()


async def test_two_ways_to_say_the_length_are_refused(serve: Serve) -> None:
    url = httpx.URL(await serve(says(b"smuggled")))
    reader, writer = await asyncio.open_connection("127.0.0.1", url.port)
    lengths = "Content-Length: 5\r\nContent-Length: 50"
    writer.write(f"POST {url.path} HTTP/1.1\r\nHost: localhost\r\n{lengths}\r\n\r\nhello".encode())
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"smuggled" not in answer
    writer.close()


async def test_a_length_that_is_called_a_matter_of_the_connection_smuggles_nothing(serve: Serve) -> None:
    url = httpx.URL(await serve(says(b"smuggled")))
    reader, writer = await asyncio.open_connection("127.0.0.1", url.port)
    named = "Connection: content-length\r\nContent-Length: 5"
    writer.write(f"POST {url.path} HTTP/1.1\r\nHost: localhost\r\n{named}\r\n\r\nhello".encode())
    answer = await reader.read()
    assert b"smuggled" not in answer
    writer.close()


# Its pages


async def test_where_nothing_listens_a_page_says_so(proxy: Proxy, browser: httpx.AsyncClient) -> None:
    free = await free_port()
    url = await proxy.url(target(free))
    page = await browser.get(url, headers={"Accept": "text/html"})
    assert page.status_code == 502
    assert f"port {free} of sandbox lab" in page.text
    assert "nothing listens there" in page.text
    assert "Start a server there" in page.text
    assert page.headers["content-security-policy"].startswith("sandbox;")
    text = await browser.get(url)
    assert text.headers["content-type"].startswith("text/plain")
    assert "<" not in text.text


async def test_what_a_sandbox_said_is_escaped_in_a_page(serve: Serve, browser: httpx.AsyncClient) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"<script>alert(1)</script>\r\n\r\n")

    page = await browser.get(await serve(handle), headers={"Accept": "text/html"})
    assert page.status_code == 502
    assert "does not speak HTTP" in page.text
    assert "<script" not in page.text


@pytest.mark.parametrize("error", [NotRunningError("it is <paused>", sandbox="<lab>"), NotAvailableError("no way")])
async def test_why_it_cannot_be_reached_is_told(
    proxy: Proxy, browser: httpx.AsyncClient, error: NotRunningError
) -> None:
    async def dial() -> ByteStream:
        raise error

    url = await proxy.url(Target(uid="one", name="lab", port=80, dial=dial))
    page = await browser.get(url, headers={"Accept": "text/html"})
    assert page.status_code == 503
    assert "cannot be reached" in page.text
    assert "<paused>" not in page.text


async def test_an_application_that_hangs_up_without_an_answer_is_told_in_plain_words(
    serve: Serve, browser: httpx.AsyncClient
) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)

    page = await browser.get(await serve(handle))
    assert page.status_code == 502
    assert "closed the connection without an answer" in page.text
    assert "ConnectionClosed" not in page.text


async def test_an_application_that_does_not_answer_is_given_up(
    serve: Serve, browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "ANSWER_PATIENCE", 0.2)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    page = await browser.get(await serve(handle))
    assert page.status_code == 504
    assert "did not answer within 0.2 seconds" in page.text
