"""Event streams: what is asked for, and how they are taken up again (FAULTS N2, N3)."""

from __future__ import annotations

import asyncio

import pytest

from tests.connect.conftest import Listen, attach_to, head
from yaosb_jupyter.errors import InvalidOptionError, PortUnavailableError, ProtocolError
from yaosb_jupyter.tai.connect import events
from yaosb_jupyter.types import ServerEvent

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n"
QUICK = b"retry: 10\n\n"


async def test_n2_path_headers_and_url(listen: Listen) -> None:
    heads: list[str] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await head(reader))
        writer.write(STREAM + b"data: a\n\n")
        await reader.read()

    port = await listen(handle)
    async with await attach_to(
        port, "sse", path="/events?from=é", headers={"X-Mine": "yes", "Accept": "a/b"}
    ) as stream:
        assert stream.url == f"http://localhost:{port}/events?from=%C3%A9"
        assert await stream.read() == ServerEvent(data="a")
    assert heads[0].startswith("get /events?from=%c3%a9 http/1.1\r\n")
    assert f"host: localhost:{port}\r\n" in heads[0]
    assert "x-mine: yes\r\n" in heads[0]
    assert heads[0].count("accept:") == 1


async def test_n3_a_stream_is_taken_up_from_its_last_event(listen: Listen) -> None:
    asked: list[str] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await head(reader)
        asked.append(request.partition("last-event-id: ")[2].partition("\r")[0])
        if len(asked) > 3:
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            return
        number = len(asked)
        writer.write(STREAM + QUICK + b"id: %d\ndata: %d\n\ndata: never finished" % (number, number))

    stream = await attach_to(await listen(handle), "sse")
    assert [event async for event in stream] == [ServerEvent(data=str(n), id=str(n)) for n in (1, 2, 3)]
    assert asked == ["", "1", "2", "3"]
    assert "204" in stream.close_reason
    assert await stream.read() is None
    await stream.close()


async def test_a_stream_that_shall_end_with_its_connection_does(listen: Listen) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(STREAM + b"data: only\n\n")

    async with await attach_to(await listen(handle), "sse", reconnect=False) as stream:
        assert [event.data async for event in stream] == ["only"]
        assert stream.close_reason


async def test_n3_the_server_tells_how_long_to_wait(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[float] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        times.append(asyncio.get_running_loop().time())
        writer.write(STREAM + b"retry: 300\ndata: x\n\n")

    async with await attach_to(await listen(handle), "sse") as stream:
        await stream.read()
        await stream.read()
    assert times[1] - times[0] >= 0.3


async def test_a_server_that_stays_away_is_given_up(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_RETRY", 0.01)
    gone = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        if not gone.is_set():
            gone.set()
            writer.write(STREAM + QUICK + b"data: x\n\n")
        else:
            writer.transport.abort()

    async with await attach_to(await listen(handle), "sse") as stream:
        assert (await stream.read()) == ServerEvent(data="x")
        with pytest.raises(PortUnavailableError, match="attempts"):
            await stream.read()
        assert await stream.read() is None


async def test_a_server_that_has_gone_is_looked_for_and_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_RETRY", 0.01)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        server.close()
        writer.write(STREAM + QUICK + b"data: x\n\n")
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    stream = await attach_to(server.sockets[0].getsockname()[1], "sse")
    assert (await stream.read()) == ServerEvent(data="x")
    with pytest.raises(PortUnavailableError, match="attempts"):
        await stream.read()
    await stream.close()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 12\r\n\r\nno such page", "status 404.*no such page"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>a page", "type text/html.*a page"),
        (b"HTTP/1.1 500 Oops\r\n\r\n" + b"x" * 100_000, "status 500.*xxx"),
        (b"SSH-2.0-OpenSSH\r\n", "no HTTP"),
    ],
)
async def test_what_is_no_event_stream_is_told(listen: Listen, answer: bytes, told: str) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(answer)

    with pytest.raises(ProtocolError, match=f"(?s){told}") as caught:
        await attach_to(await listen(handle), "sse")
    assert len(str(caught.value)) < 1000
    assert caught.value.sandbox == "lab"


async def test_nothing_can_be_written_to_it(listen: Listen) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(STREAM)
        await reader.read()

    async with await attach_to(await listen(handle), "sse") as stream:
        with pytest.raises(ProtocolError, match="one way"):
            await stream.write("word")


async def test_closing_it_ends_who_reads(listen: Listen) -> None:
    left = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(STREAM)
        await reader.read()
        left.set()

    stream = await attach_to(await listen(handle), "sse")
    reading = asyncio.ensure_future(stream.read())
    await asyncio.sleep(0)
    await stream.close()
    async with asyncio.timeout(5):
        assert await reading is None
        await left.wait()
    assert stream.close_reason == "closed here"


async def test_closing_it_ends_the_wait_before_the_next_try(listen: Listen) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(STREAM + b"retry: 50000\n\n")

    stream = await attach_to(await listen(handle), "sse")
    reading = asyncio.ensure_future(stream.read())
    await asyncio.sleep(0.1)  # so that it waits, most likely
    await stream.close()
    async with asyncio.timeout(5):
        assert await reading is None


async def test_an_event_without_end_is_refused(listen: Listen) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(STREAM + b"data: ")
        while True:
            writer.write(b"x" * 10_000)
            await writer.drain()

    async with await attach_to(await listen(handle), "sse", max_message="1m") as stream:
        with pytest.raises(ProtocolError, match="more than 1048576"):
            await stream.read()


async def test_n2_a_server_that_does_not_answer_in_time_is_told(listen: Listen) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    with pytest.raises(PortUnavailableError, match=r"within 0\.2 s"):
        await attach_to(await listen(handle), "sse", timeout=0.2)


@pytest.mark.parametrize(
    "fields",
    [
        {"protocol": "http"},
        {"headers": {"X": "a\r\nY: b"}},
        {"headers": {"a b": "c"}},
        {"headers": {"Host": "other"}},
        {"headers": [("a", "b")]},
        {"path": "/a\nb"},
        {"subprotocols": "echo"},
        {"subprotocols": ["a b"]},
        {"timeout": -1},
        {"max_message": "x"},
        {"reconnect": 1},
        {"port": 0},
        {"nothing": 1},
    ],
)
async def test_bad_options_are_named(fields: dict[str, object]) -> None:
    field = next(iter(fields))
    given = {"port": 80, "protocol": "sse", **fields}
    with pytest.raises(InvalidOptionError, match=field):
        await attach_to(**given)  # type: ignore[arg-type]


REDIRECTS = {
    "relative": ("../moved/events?x=1", "/moved/events?x=1"),
    "below the same port": ("/moved", "/moved"),
    "whole": ("http://localhost:{port}/moved", "/moved"),
    "by number": ("http://127.0.0.1:{port}/moved#part", "/moved"),
}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(("location", "path"), REDIRECTS.values(), ids=REDIRECTS.keys())
async def test_redirects_are_followed(listen: Listen, status: int, location: str, path: str) -> None:
    asked: list[str] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await head(reader)).split(" ")[1])
        if len(asked) == 1:
            writer.write(f"HTTP/1.1 {status} Moved\r\nLocation: {location.format(port=port)}\r\n\r\n".encode())
        else:
            writer.write(STREAM + b"data: here\n\n")

    port = await listen(handle)
    async with await attach_to(port, "sse", path="/old/events", reconnect=False) as stream:
        assert await stream.read() == ServerEvent(data="here")
    assert asked == ["/old/events", path]


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("https://localhost:{port}/", "away from this port"),
        ("http://example.org/events", "away from this port"),
        ("//localhost:1/", "away from this port"),
        ("http://[::1/", "no address"),
        ("/again", "more than 20 redirects"),
    ],
)
async def test_redirects_that_lead_nowhere_are_told(listen: Listen, location: str, told: str) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(f"HTTP/1.1 302 Found\r\nLocation: {location.format(port=port)}\r\n\r\n".encode())

    port = await listen(handle)
    with pytest.raises(ProtocolError, match=told):
        await attach_to(port, "sse")


@pytest.mark.parametrize("protocol", ["sse", "ws"])
async def test_a_server_that_hangs_up_is_told_in_plain_words(listen: Listen, protocol: str) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)

    with pytest.raises(PortUnavailableError, match="ended the connection without an answer"):
        await attach_to(await listen(handle), protocol)
