"""A WebSocket to whose other end a server of plain bytes listens, as noVNC and websockify have it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import h11
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.proxy.client import Client

_DATA = (Opcode.BINARY, Opcode.TEXT, Opcode.CONT)
_SUBPROTOCOL = Subprotocol("binary")
_MAX_MESSAGE = 2**24  # a paste into the desktop is one


async def bridge(client: Client, request: h11.Request, stream: ByteStream) -> None:
    """Carries bytes both ways until one side ends; each message of the browser is what the server gets next.

    Raises `ClientGone`.
    """
    socket = _Socket(client)
    if not await socket.open(request):
        return
    ways = [asyncio.create_task(_up(socket, stream)), asyncio.create_task(_down(socket, stream))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)  # a way that broke ends the other


async def _up(socket: _Socket, stream: ByteStream) -> None:
    while (data := await socket.receive()) is not None:
        await stream.send(data)


async def _down(socket: _Socket, stream: ByteStream) -> None:
    code, reason = CloseCode.NORMAL_CLOSURE, ""
    try:
        while data := await stream.receive():
            await socket.send(data)
    except SandboxError as error:
        code, reason = CloseCode.GOING_AWAY, error.message
    await socket.close(code, reason)


class _Socket:
    """The server's end of a WebSocket on a connection whose request was read."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._protocol = ServerProtocol(select_subprotocol=_subprotocol, max_size=_MAX_MESSAGE)

    async def open(self, request: h11.Request) -> bool:
        """False where it asked for no WebSocket, and was told so."""
        lines = [request.method + b" " + request.target + b" HTTP/1.1"]
        lines += [name + b": " + value for name, value in request.headers]
        self._protocol.receive_data(b"\r\n".join([*lines, b"", b""]))
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                self._protocol.send_response(self._protocol.accept(event))
        await self._flush()
        return self._protocol.state is State.OPEN

    async def receive(self) -> bytes | None:
        """The next bytes of a message; None at the end."""
        while self._protocol.state is State.OPEN:
            data = await self._client.read_raw()
            if data:
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
            frames = [event for event in self._protocol.events_received() if isinstance(event, Frame)]
            await self._flush()
            if payload := b"".join(bytes(frame.data) for frame in frames if frame.opcode in _DATA):
                return payload
        return None

    async def send(self, data: bytes) -> None:
        self._protocol.send_binary(data)
        await self._flush()

    async def close(self, code: CloseCode, reason: str) -> None:
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(code, reason.encode()[:120].decode(errors="ignore"))
            await self._flush()

    async def _flush(self) -> None:
        if data := b"".join(self._protocol.data_to_send()):
            await self._client.write(data)


def _subprotocol(_protocol: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    return _SUBPROTOCOL if _SUBPROTOCOL in offered else None
