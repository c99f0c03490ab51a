"""A proxy over servers of this process: what it does, without a sandbox."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager

import httpx
import pytest

from tests.rig.listening import Handle, listening
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.proxy.server import Proxy
from yaosb_jupyter.tai.proxy.tickets import Target
from yaosb_jupyter.tai.sockets import connect

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
            return await proxy.url(target(await stack.enter_async_context(listening(handle))), path)

        yield begin


@pytest.fixture
async def browser() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
        yield client


@contextmanager
def reports() -> Iterator[list[object]]:
    """What the loop would write to the log."""
    loop = asyncio.get_running_loop()
    told: list[object] = []
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: told.append(context))
    try:
        yield told
    finally:
        loop.set_exception_handler(before)


async def all_ended(proxy: Proxy) -> None:
    """Waits for the connections, without a look at how they ended, until nothing holds what they left."""
    async with asyncio.timeout(20):
        while proxy._connections:
            await asyncio.wait(proxy._connections)
    for _ in range(10):  # turns of the loop, which close the transports
        await asyncio.sleep(0)
    gc.collect()


async def head(reader: asyncio.StreamReader) -> bytes:
    """A request's head, as the application got it."""
    return await reader.readuntil(b"\r\n\r\n")


async def raw(url: httpx.URL, sent: bytes, *, end: bool = False) -> bytes:
    """All that the proxy answers to these bytes until it closes; ``end`` closes this side's way behind them."""
    reader, writer = await asyncio.open_connection("127.0.0.1", url.port)
    try:
        writer.write(sent)
        if end:
            writer.write_eof()
        async with asyncio.timeout(20):
            return await reader.read()
    finally:
        writer.close()


def says(body: bytes, *headers: str, status: str = "200 OK") -> Handle:
    """An application that answers everything so."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()

    return handle


async def free_port() -> int:
    """Where nothing listens."""
    async with listening(says(b"")) as port:
        pass
    return port
