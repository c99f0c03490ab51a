"""A guest that lies, floods or says nothing costs a call of its own sandbox, and no more."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.contract.box import pieces
from yaosb_jupyter.errors import NotFoundError, PathError, ProtocolError, SandboxLostError, UnavailableError
from yaosb_jupyter.guest import frames
from yaosb_jupyter.link import stream
from yaosb_jupyter.link.connection import Connection, Stream
from yaosb_jupyter.tai.volumes import link as link_volume
from yaosb_jupyter.tai.volumes.link import LinkVolume

Serve = Callable[[Stream], Awaitable[None]]
GOOD: dict[str, Any] = {"name": "file", "size": 1, "mode": 0o100644, "mtime": 0.0, "target": None}


@asynccontextmanager
async def guest_that(serve: Serve) -> AsyncIterator[LinkVolume]:
    """A volume whose guest answers by ``serve``."""
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    host = Connection(dialled=False, hello={})
    guest = Connection(dialled=True, hello={"features": ["files.manifest"]}, handler=serve)
    await loop.connect_accepted_socket(lambda: host, ours)
    await loop.connect_accepted_socket(lambda: guest, theirs)
    await host.ready()

    async def connect() -> Connection:
        return host

    try:
        yield LinkVolume(connect, sandbox="box")
    finally:
        await guest.close()
        await host.close()


def answering(*messages: dict[str, Any], result: dict[str, Any] | None = None) -> Serve:
    async def serve(stream: Stream) -> None:
        for message in messages:
            await stream.send_message(message)
        stream.close(result)

    return serve


def refusing(**error: Any) -> Serve:
    async def serve(stream: Stream) -> None:
        stream.fail(error)

    return serve


LIES: list[Any] = [
    None,
    {},
    {**GOOD, "name": "../evil"},
    {**GOOD, "name": ".."},
    {**GOOD, "name": ""},
    {**GOOD, "name": "a/b"},
    {**GOOD, "name": "x\0y"},
    {**GOOD, "name": "x" * 5000},
    {**GOOD, "name": "\ud800"},
    {**GOOD, "name": 7},
    {**GOOD, "size": -1},
    {**GOOD, "size": 1 << 70},
    {**GOOD, "size": "1"},
    {**GOOD, "mode": -1},
    {**GOOD, "mode": 1 << 20},
    {**GOOD, "mtime": "now"},
    {**GOOD, "target": "x" * 10_000},
]


@pytest.mark.parametrize("lie", LIES)
async def test_a_file_that_cannot_be_is_a_protocol_error(lie: Any) -> None:
    async with guest_that(answering({"entries": [GOOD, lie]})) as volume:
        with pytest.raises(ProtocolError) as caught:
            await volume.list()
        assert caught.value.sandbox == "box"


async def test_what_is_told_of_a_file_is_about_the_file_that_was_asked_for() -> None:
    lie = {**GOOD, "name": "another", "target": "/etc"}
    async with guest_that(answering(result=lie)) as volume:
        info = await volume.stat("dir/file")
        assert (info.name, info.path, info.link_target) == ("file", "dir/file", None)
    async with guest_that(answering(result={**GOOD, "mtime": float("inf")})) as volume:
        with pytest.raises(SandboxLostError, match="no number"):
            await volume.stat("dir/file")


@pytest.mark.parametrize("entries", [{"entries": 7}, {"entries": {"name": "x"}}, {"else": []}])
async def test_a_list_of_nothing_is_empty(entries: dict[str, Any]) -> None:
    async with guest_that(answering(entries)) as volume:
        assert await volume.list() == []


async def test_a_list_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_volume, "_MOST_ENTRIES", 1000)
    sent = 0

    async def flood(stream: Stream) -> None:
        nonlocal sent
        while True:
            await stream.send_message({"entries": [GOOD] * 100})
            sent += 100

    async with guest_that(flood) as volume:
        with pytest.raises(UnavailableError, match="more than 1000"):
            await volume.list()
    assert sent < 20_000


async def test_more_of_a_file_than_was_asked_for_is_refused() -> None:
    async def flood(stream: Stream) -> None:
        while not stream.closed:
            await stream.send(b"x" * 1000)

    async with guest_that(flood) as volume:
        got = 0
        with pytest.raises(ProtocolError):
            async for piece in volume.read("file", size=3500):
                got += len(piece)
        assert got == 3000


async def test_a_silent_guest_is_told_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_volume, "PATIENCE", 0.2)
    monkeypatch.setattr(stream, "LET_GO", 0.1)

    async def silence(stream: Stream) -> None:
        while True:  # not even a cancelled call is answered
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if stream.closed:
                    raise

    async with guest_that(silence) as volume, asyncio.timeout(10):
        calls: list[Callable[[], Awaitable[Any]]] = [
            lambda: volume.stat("file"),
            volume.list,
            lambda: volume.remove("file"),
            lambda: anext(volume.read("file")),
            lambda: anext(volume.manifest("file")),
            lambda: anext(volume.pack("file")),
            lambda: anext(volume.pack("file", pieces(b"x" * 3_000_000))),
            lambda: volume.write("file", pieces(b"x" * 3_000_000)),
            lambda: volume.unpack("file", pieces(b"x" * 3_000_000)),
        ]
        for call in calls:
            with pytest.raises(UnavailableError, match="not answered"):
                await call()


async def test_a_guest_that_says_it_works_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_volume, "PATIENCE", 0.3)

    async def slow(stream: Stream) -> None:
        for _ in range(5):
            await asyncio.sleep(0.1)
            await stream.send_message({"busy": True})
        stream.close()

    async with guest_that(slow) as volume:
        await volume.remove("tree", recursive=True)


async def test_a_link_that_breaks_is_told() -> None:
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    host = Connection(dialled=False, hello={})
    await loop.connect_accepted_socket(lambda: host, ours)
    theirs.setblocking(False)
    await loop.sock_sendall(theirs, frames.encode_json(frames.HELLO, 0, {"major": frames.MAJOR}))
    await host.ready()

    async def connect() -> Connection:
        return host

    reading = asyncio.ensure_future(anext(LinkVolume(connect, sandbox="box").read("file")))
    assert await loop.sock_recv(theirs, 65536)
    theirs.close()
    with pytest.raises(SandboxLostError):
        await reading
    await host.close()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"code": "OSError", "errno": 2}, NotFoundError),
        ({"code": "OSError", "errno": 18}, PathError),
        ({"code": "OSError", "errno": 28}, UnavailableError),
        ({"code": "OSError", "errno": 13, "at": "sub/file"}, PathError),
        ({"code": "OSError", "errno": 99999}, UnavailableError),
        ({"code": "OSError", "errno": "2"}, UnavailableError),
        ({"code": "OSError", "errno": 13, "at": 7}, PathError),
        ({"code": "RecordError", "message": "x" * 10_000}, PathError),
        ({"code": "SystemExit"}, UnavailableError),
        ({}, UnavailableError),
    ],
)
async def test_what_a_guest_refuses_is_one_of_ours(error: dict[str, Any], expected: type[Exception]) -> None:
    async with guest_that(refusing(**error)) as volume:
        with pytest.raises(expected) as caught:
            await volume.mkdir("dir")
        assert len(str(caught.value)) < 1000
