"""A listening end over a socket of a test's own, and what connects to it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from yaosb_jupyter.guest import frames
from yaosb_jupyter.link.connection import Connection, Handler, Stream, dial_unix

HELLO = frames.encode_json(frames.HELLO, 0, {"major": frames.MAJOR, "minor": 0, "features": []})


async def serve_anything(stream: Stream) -> None:
    """Operations that the tests call."""
    match stream.request["op"]:
        case "echo":
            while (item := await stream.receive()) is not None and item[0] != frames.EOF:
                await stream.send(item[1], item[0])
            stream.close({"echoed": True})
        case "add":
            stream.close({"sum": stream.request["a"] + stream.request["b"]})
        case "flood":
            for _ in range(stream.request["count"]):
                await stream.send(b"x" * 2**16)
        case "fail":
            stream.fail({"code": "NotFoundError", "message": "no such thing", "hint": "look again"})
        case "crash":
            raise ZeroDivisionError("a bug")
        case "wait":
            await stream.send_message({"waiting": True})
            await asyncio.Event().wait()


class Peer:
    """A listening end with a handler, and what connects to it."""

    def __init__(self, path: Path, handler: Handler | None, **options: Any) -> None:
        self.path = path
        self.handler = handler
        self.options = options
        self.accepted: list[Connection] = []
        self.arrived = asyncio.Event()

    def accept(self) -> Connection:
        connection = Connection(dialled=False, hello={"name": "peer"}, handler=self.handler, **self.options)
        self.accepted.append(connection)
        self.arrived.set()
        return connection

    async def raw(self, *data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection that says what it likes."""
        reader, writer = await asyncio.open_unix_connection(str(self.path))
        writer.write(b"".join(data))
        return reader, writer


Listen = Callable[..., Awaitable[Peer]]


@pytest.fixture
async def listen(tmp_path: Path) -> AsyncIterator[Listen]:
    async with contextlib.AsyncExitStack() as stack:

        async def begin(handler: Handler | None = serve_anything, **options: Any) -> Peer:
            peer = Peer(tmp_path / "s", handler, **options)
            server = await asyncio.get_running_loop().create_unix_server(peer.accept, str(peer.path))
            stack.callback(server.close)

            async def end() -> None:
                for connection in peer.accepted:
                    await connection.close()

            stack.push_async_callback(end)
            return peer

        yield begin


@pytest.fixture
async def client(listen: Listen) -> AsyncIterator[Connection]:
    peer = await listen()
    connection = await dial_unix(peer.path, {"name": "client"})
    yield connection
    await connection.close()


async def stuck(connection: Connection) -> None:
    """Returns when the other side has let the socket and the buffer before it fill up."""
    async with asyncio.timeout(5):
        while connection.writable:  # noqa: ASYNC110 - the transport's own state
            await asyncio.sleep(0)


async def reply(reader: asyncio.StreamReader) -> list[frames.Frame]:
    """All frames until the other side ends the connection."""
    return list(frames.Decoder().feed(await asyncio.wait_for(reader.read(), 5)))


def opening(stream: int, op: str, **arguments: Any) -> bytes:
    """The frame that opens a stream for an operation."""
    return frames.encode_json(frames.OPEN, stream, {"op": op, **arguments})
