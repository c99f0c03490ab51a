"""A WebSocket, by the `websockets` library's protocol over any connection."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import cast

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHandshake, InvalidStatus
from websockets.frames import EXTERNAL_CLOSE_CODES, CloseCode, Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from yaosb_jupyter.checks import check_number, check_text
from yaosb_jupyter.errors import InvalidOptionError, PortUnavailableError, ProtocolError, SandboxError
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.connect.base import NORMAL, AsyncAttachment, Endpoint

_HELD = 2**20
"""Bytes of messages that wait for their reader; beyond them the server waits."""
_CLOSE_PATIENCE = 3.0
"""How long the other side has for its farewell, and to hang up after it."""
_MAX_REASON = 123  # bytes, RFC 6455 5.5
_PENDING_PONGS = 1024
_BODY_SHOWN = 500

_quiet = logging.getLogger(f"{__name__}.frames")
_quiet.setLevel(logging.WARNING)  # the library tells each frame


async def open_websocket(endpoint: Endpoint) -> WebSocketAttachment:
    """Raises `PortUnavailableError`, `ProtocolError` with status and body where the server takes no WebSocket."""
    protocol = ClientProtocol(
        parse_uri(endpoint.url("ws")),
        subprotocols=[Subprotocol(name) for name in endpoint.subprotocols] or None,
        max_size=endpoint.max_message,
        logger=_quiet,
    )
    request = protocol.connect()
    for name, value in endpoint.headers.items():
        if name in request.headers:
            del request.headers[name]
        request.headers[name] = value
    stream = await endpoint.dial()
    attachment = WebSocketAttachment(endpoint, protocol, stream)
    try:
        protocol.send_request(request)
        await attachment.handshake()
    except BaseException:
        await stream.aclose()
        raise
    return attachment


class WebSocketAttachment(AsyncAttachment[str | bytes]):
    """A task of its own reads the connection, so that pings are answered while nobody reads messages."""

    def __init__(self, endpoint: Endpoint, protocol: ClientProtocol, stream: ByteStream) -> None:
        super().__init__(endpoint.url("ws"))
        self._endpoint = endpoint
        self._protocol = protocol
        self._stream = stream
        self._messages: deque[str | bytes] = deque()
        self._held = 0
        self._fragments: list[bytes] = []
        self._text = False
        self._news = asyncio.Event()  # something for the reader
        self._room = asyncio.Event()  # something was read
        self._failure: SandboxError | None = None
        self._flushing = asyncio.Lock()
        self._pump: asyncio.Task[None] | None = None
        self._pongs: asyncio.Task[None] | None = None
        self._closing = False

    @property
    def subprotocol(self) -> str | None:
        return self._protocol.subprotocol

    @property
    def close_code(self) -> int | None:
        return self._protocol.close_code

    @property
    def close_reason(self) -> str:
        return self._protocol.close_reason or ""

    async def handshake(self) -> None:
        """Raises `ProtocolError`, `PortUnavailableError`."""
        await self._flush()
        answered = False
        while self._protocol.state is State.CONNECTING and self._protocol.handshake_exc is None:
            data = await self._stream.receive()
            answered = answered or bool(data)
            self._feed(data)
        refusal = self._protocol.handshake_exc
        if refusal is not None:
            raise (self._refused(refusal) if answered else self._endpoint.unanswered()) from refusal
        self._pump = asyncio.create_task(self._run(), name=f"WebSocket {self.url}")

    async def read(self) -> str | bytes | None:
        assert self._pump is not None
        while not self._messages:
            if self._closing:
                return None
            if self._pump.done():
                self._raise_if_broken()
                return None
            self._news.clear()
            await self._news.wait()
        message = self._messages.popleft()
        self._held -= len(message)
        self._room.set()
        return message

    def _raise_if_broken(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._protocol.close_code == CloseCode.ABNORMAL_CLOSURE:
            raise PortUnavailableError(
                f"port {self._endpoint.port}: the WebSocket broke off without a farewell",
                sandbox=self._endpoint.sandbox,
                hint="did the server or its sandbox end? look at what it writes",
            )

    async def write(self, data: str | bytes) -> None:
        if self._protocol.state is not State.OPEN:
            raise ProtocolError(
                f"the WebSocket has ended ({self.close_code or 'it is being closed'} {self.close_reason})".rstrip(),
                sandbox=self._endpoint.sandbox,
                hint="attach again",
            )
        if isinstance(data, str):
            self._protocol.send_text(data.encode())
        else:
            self._protocol.send_binary(data)
        await self._flush()

    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        _check_farewell(code, reason)
        self._closing = True
        self._news.set()
        self._room.set()
        try:
            async with asyncio.timeout(_CLOSE_PATIENCE):
                if self._protocol.state is State.OPEN:
                    self._protocol.send_close(code, reason)
                    await self._flush()
                if self._pump is not None:
                    await asyncio.wait([self._pump])
        except TimeoutError:
            pass  # it does not answer
        finally:
            for task in (self._pump, self._pongs):
                if task is not None:
                    task.cancel()
            if self._protocol.state is not State.CLOSED:
                self._protocol.receive_eof()
            await self._stream.aclose()

    async def _run(self) -> None:
        """Reads until the end, taking messages apart from what the protocol answers by itself."""
        try:
            while self._protocol.state is not State.CLOSED:
                await self._answer()  # what came with the handshake, too
                await self._wait_for_room()
                self._feed(await self._receive())
        except SandboxError as error:
            self._failure = error
            self._protocol.receive_eof()
        finally:
            self._explain()
            await self._stream.aclose()
            self._news.set()

    async def _receive(self) -> bytes:
        """Once farewell was said, the server shall hang up."""
        try:
            async with asyncio.timeout(_CLOSE_PATIENCE if self._protocol.state is State.CLOSING else None):
                return await self._stream.receive()
        except TimeoutError:
            return b""

    def _feed(self, data: bytes) -> None:
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        for event in self._protocol.events_received():
            if isinstance(event, Frame):
                self._take(event)
            else:
                assert isinstance(event, Response)  # of which `handshake_exc` tells

    def _take(self, frame: Frame) -> None:
        if frame.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            return
        if frame.opcode is not Opcode.CONT:
            self._text = frame.opcode is Opcode.TEXT
        self._fragments.append(bytes(frame.data))
        if not frame.fin:
            return
        whole = b"".join(self._fragments)
        self._fragments.clear()
        try:
            message = whole.decode() if self._text else whole
        except UnicodeDecodeError:
            self._protocol.fail(CloseCode.INVALID_DATA, "text that is not UTF-8")
            return
        if not self._closing:
            self._messages.append(message)
            self._held += len(message)
            self._news.set()

    async def _wait_for_room(self) -> None:
        while self._held > _HELD and not self._closing:
            self._room.clear()
            await self._room.wait()

    async def _answer(self) -> None:
        """Sends what the protocol answers; not waited for, lest a server that does not read stops our reading."""
        if self._pongs is None or self._pongs.done():
            self._pongs = asyncio.create_task(self._flush())
        elif len(self._protocol.writes) > _PENDING_PONGS:
            await asyncio.wait([self._pongs])

    async def _flush(self) -> None:
        async with self._flushing:
            while pieces := self._protocol.data_to_send():
                for data in pieces:
                    await (self._stream.send(data) if data else self._stream.send_eof())

    def _explain(self) -> None:
        """Where we ended it because the server broke the rules."""
        error = self._protocol.parser_exc
        sent = self._protocol.close_sent
        broke = sent is not None and not self._closing and sent.code in _BROKEN
        if self._failure is None and broke:
            assert sent is not None
            self._failure = ProtocolError(
                f"port {self._endpoint.port} broke the WebSocket protocol: {error or sent.reason}",
                sandbox=self._endpoint.sandbox,
                hint="a larger max_message lets more through" if sent.code == CloseCode.MESSAGE_TOO_BIG else None,
            )

    def _refused(self, refusal: BaseException) -> SandboxError:
        endpoint = self._endpoint
        where = f"port {endpoint.port} takes no WebSocket at {endpoint.path}"
        if isinstance(refusal, InvalidStatus):
            response = refusal.response
            body = bytes(response.body or b"")[:_BODY_SHOWN].decode(errors="replace").strip()
            said = f"; it said: {body}" if body else ""
            why = f"status {response.status_code} {response.reason_phrase}".rstrip() + said
        elif isinstance(refusal, InvalidHandshake):
            why = str(refusal)
        else:
            why = f"it does not speak HTTP: {refusal}"
        return ProtocolError(f"{where}: {why}", sandbox=endpoint.sandbox, hint="look at path, headers and subprotocols")


def _check_farewell(code: object, reason: object) -> None:
    """Raises `InvalidOptionError` for what may not be said (RFC 6455 7.4)."""
    check_number("code", code, NORMAL, 4999)
    if code not in EXTERNAL_CLOSE_CODES and not 3000 <= cast(int, code) < 5000:
        raise InvalidOptionError(f"code={code!r} is not for saying", hint="accepted: 1000, 1001, 3000 to 4999")
    check_text("reason", reason)
    if len(cast(str, reason).encode()) > _MAX_REASON:
        raise InvalidOptionError(f"reason is longer than {_MAX_REASON} bytes", hint="say it in a message before")


_BROKEN = (CloseCode.PROTOCOL_ERROR, CloseCode.INVALID_DATA, CloseCode.MESSAGE_TOO_BIG)
