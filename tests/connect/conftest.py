"""Connections to servers of this process, without a sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Unpack

import pytest

from tests.rig.listening import Handle, listening
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.connect.attach import AttachFields, attach
from yaosb_jupyter.tai.connect.base import AsyncAttachment
from yaosb_jupyter.tai.sockets import connect

Listen = Callable[[Handle], Awaitable[int]]


async def attach_to(port: int, protocol: str = "ws", **fields: Unpack[AttachFields]) -> AsyncAttachment[Any]:
    """As `AsyncSandbox.attach`, to a port of this host."""

    async def dial() -> ByteStream:
        return await connect(port, sandbox="lab")

    return await attach(dial, "lab", port, protocol, fields)


@pytest.fixture
async def listen() -> AsyncIterator[Listen]:
    """Listens with a function of the connection, whose port it gives."""
    async with AsyncExitStack() as stack:

        async def begin(handle: Handle) -> int:
            return await stack.enter_async_context(listening(handle))

        yield begin


async def head(reader: asyncio.StreamReader) -> str:
    """A request's head, in lower case."""
    return (await reader.readuntil(b"\r\n\r\n")).decode().lower()
