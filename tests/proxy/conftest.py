"""A proxy over servers of this process: what it does, without a sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import httpx
import pytest

from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.proxy.server import Proxy
from yaosb_jupyter.tai.proxy.tickets import Target
from yaosb_jupyter.tai.sockets import connect

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Serve = Callable[..., Awaitable[str]]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def proxy(clock: Clock) -> AsyncIterator[Proxy]:
    proxy = Proxy(clock)
    yield proxy
    await proxy.close()


def target(port: int, uid: str = "one") -> Target:
    async def dial() -> ByteStream:
        return await connect(port, sandbox="lab")

    return Target(uid=uid, name="lab", port=port, dial=dial)


@pytest.fixture
async def serve(proxy: Proxy) -> AsyncIterator[Serve]:
    """Listens with ``handle`` and gives the proxied URL."""
    async with AsyncExitStack() as stack:

        async def begin(handle: Handle, path: str = "/") -> str:
            tasks: set[asyncio.Task[None]] = set()

            async def handled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                task = asyncio.current_task()
                assert task is not None
                tasks.add(task)
                try:
                    await handle(reader, writer)
                except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                    pass  # the proxy has left
                finally:
                    writer.close()

            async def end() -> None:
                server.close()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

            server = await asyncio.start_server(handled, "127.0.0.1", 0)
            stack.push_async_callback(end)
            return await proxy.url(target(server.sockets[0].getsockname()[1]), path)

        yield begin


@pytest.fixture
async def browser() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
        yield client


async def head(reader: asyncio.StreamReader) -> bytes:
    """A request's head, as the application got it."""
    return await reader.readuntil(b"\r\n\r\n")


def says(body: bytes, *headers: str, status: str = "200 OK") -> Handle:
    """An application that answers everything so."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()

    return handle
