"""One HTTP request on one connection of its own: streamed bodies both ways, and the engine's upgrade to raw bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Any, TypeVar, cast

from yaosb_jupyter.errors import ProtocolError

PIECE = 2**16
_MAX_HEAD = 2**16
_MAX_SMALL_BODY = 2**20
_MAX_EARLY = 2**20

_P = TypeVar("_P", bound=asyncio.Protocol)


class Connection:
    """A connection to the engine; `read` pulls, and what is not pulled stays with the engine."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._handed_over = False

    async def read(self, size: int = PIECE) -> bytes:
        """Up to ``size`` bytes, empty at the end. Nothing is lost when cancelled."""
        try:
            return await self._reader.read(size)
        except ConnectionError:
            return b""

    async def write(self, data: bytes) -> None:
        """Waits while the other side does not take it. Raises `ConnectionError`."""
        self._writer.write(data)
        await self._writer.drain()

    async def request(
        self,
        method: str,
        target: str,
        *,
        headers: dict[str, str] | None = None,
        body: Any | AsyncIterable[bytes] = None,
    ) -> Response:
        """Sends a request (``body`` as JSON, or streamed) and reads the head of the answer."""
        head = {"Host": "docker", **(headers or {})}
        payload = b""
        streamed = isinstance(body, AsyncIterable)
        if streamed:
            head["Transfer-Encoding"] = "chunked"
        elif body is not None:
            payload = json.dumps(body).encode()
            head |= {"Content-Type": "application/json", "Content-Length": str(len(payload))}
        elif method in ("POST", "PUT"):
            head["Content-Length"] = "0"
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
        await self.write("\r\n".join(lines).encode() + payload)
        if streamed:
            async for piece in body:
                if piece:
                    await self.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await self.write(b"0\r\n\r\n")
        return await self._response()

    async def _response(self) -> Response:
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
            status_line, *lines = head[:-4].decode("latin-1").split("\r\n")
            status = int(status_line.split(" ", 2)[1])
        except asyncio.IncompleteReadError as error:
            raise ConnectionResetError("the engine closed the connection") from error
        except (asyncio.LimitOverrunError, ValueError, IndexError) as error:
            raise ProtocolError("the engine's answer is not HTTP") from error
        pairs = (line.partition(":") for line in lines)
        return Response(status, {name.strip().lower(): value.strip() for name, _, value in pairs}, self._reader)

    async def hand_over(self, make: Callable[[], _P]) -> _P:
        """Makes a protocol that has all that comes from here on, and ends the connection.

        Raises `ConnectionError` where that has ended already: then none is made, for nobody would tell it.
        """
        transport = cast(asyncio.Transport, self._writer.transport)
        transport.pause_reading()
        early = await self._come_already()
        if transport.is_closing() or self._reader.at_eof():
            raise ConnectionResetError(f"it ended at once: {early[:500].decode(errors='replace')}")
        self._handed_over = True
        protocol = make()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if early:
            protocol.data_received(early)
        transport.resume_reading()
        return protocol

    async def _come_already(self) -> bytes:
        """What was read and is not taken yet."""
        found = b""
        while not self._reader.at_eof():
            reading = asyncio.ensure_future(self._reader.read(_MAX_EARLY))
            try:
                await asyncio.sleep(0)  # what has come is given at once
                if not reading.done():
                    break
                found += reading.result()
            finally:
                reading.cancel()
        return found

    async def aclose(self) -> None:
        """Ends the connection at once; the engine sees both directions closed."""
        transport = self._writer.transport
        if not transport.is_closing() or transport.get_write_buffer_size():  # else it has ended
            transport.abort()
        if self._handed_over:
            return  # its protocol is told
        try:
            await self._writer.wait_closed()
        except OSError:
            pass  # it is closed either way


class Response:
    """An answer whose body is still to come."""

    def __init__(self, status: int, headers: dict[str, str], reader: asyncio.StreamReader) -> None:
        self.status = status
        self.headers = headers
        self._reader = reader

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises `ConnectionError` where it ends too early."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            async for piece in self._chunked():
                yield piece
            return
        length = self.headers.get("content-length")
        left = int(length) if length is not None else None
        while left is None or left > 0:
            piece = await self._reader.read(PIECE if left is None else min(left, PIECE))
            if not piece:
                if left is None:
                    return
                raise ConnectionResetError("the engine closed the connection")
            if left is not None:
                left -= len(piece)
            yield piece

    async def _chunked(self) -> AsyncIterator[bytes]:
        try:
            while size := int((await self._reader.readline()).partition(b";")[0] or b"x", 16):
                while size:
                    piece = await self._reader.read(min(size, PIECE))
                    if not piece:
                        raise ConnectionResetError("the engine closed the connection")
                    size -= len(piece)
                    yield piece
                await self._reader.readexactly(2)
        except ValueError as error:
            raise ConnectionResetError("the engine closed the connection") from error
        except asyncio.IncompleteReadError as error:
            raise ConnectionResetError("the engine closed the connection") from error

    async def lines(self) -> AsyncIterator[bytes]:
        """The body's lines, without their ends; at most 1 MiB each."""
        rest = b""
        async for piece in self.chunks():
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield line
            if len(rest) > _MAX_SMALL_BODY:
                raise ProtocolError("the engine sent an endless line")
        if rest:
            yield rest

    async def text(self) -> str:
        """A small body, cut at 1 MiB; the engine's error messages are unwrapped."""
        body = b""
        async for piece in self.chunks():
            body += piece
            if len(body) >= _MAX_SMALL_BODY:
                break
        text = body.decode(errors="replace")
        try:
            return str(json.loads(text)["message"])
        except (ValueError, KeyError, TypeError):
            return text
