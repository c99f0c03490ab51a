"""Ports of this host."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from yaosb_jupyter.errors import PortUnavailableError
from yaosb_jupyter.tai.bytestream import ByteStream

LOOPBACK = ("127.0.0.1", "::1")
CONNECT_TIMEOUT = 10.0
CLOSE_TIMEOUT = 5.0
CHUNK = 2**18


async def connect(port: int, *, sandbox: str, hosts: Sequence[str] = LOOPBACK) -> ByteStream:
    """A TCP connection to the first of ``hosts`` that takes it. Raises `PortUnavailableError`."""
    failures: list[OSError] = []
    for host in hosts:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                reader, writer = await asyncio.open_connection(host, port, limit=CHUNK)
        except OSError as error:  # a timeout is one too
            failures.append(error)
        else:
            return SocketByteStream(reader, writer, port=port, sandbox=sandbox)
    refused = isinstance(failures[0], ConnectionRefusedError)
    reason = "nothing listens there" if refused else str(failures[0]) or "it does not answer"
    raise PortUnavailableError(f"port {port}: {reason}", sandbox=sandbox, hint="is a server running there?")


class SocketByteStream(ByteStream):
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, port: int, sandbox: str) -> None:
        self._reader = reader
        self._writer = writer
        self._port = port
        self._sandbox = sandbox
        self._closed = False

    async def receive(self) -> bytes:
        try:
            return await self._reader.read(CHUNK)
        except OSError as error:
            if self._closed:
                return b""
            message = f"port {self._port}: the connection broke: {error}"
            raise PortUnavailableError(message, sandbox=self._sandbox) from error

    async def send(self, data: bytes) -> None:
        if self._closed:
            return
        with suppress(OSError):  # `receive` tells
            self._writer.write(data)
            await self._writer.drain()

    async def send_eof(self) -> None:
        with suppress(OSError):
            if not self._writer.is_closing():
                self._writer.write_eof()

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self._writer.wait_closed()
