"""A stream of the link as a connection."""

from __future__ import annotations

from collections.abc import Callable

from yaosb_jupyter.errors import ProtocolError, SandboxError
from yaosb_jupyter.guest import frames
from yaosb_jupyter.link.stream import RemoteError, Stream
from yaosb_jupyter.tai.bytestream import ByteStream

FAILURES = (ConnectionError, ProtocolError, RemoteError, frames.FrameError)
"""What a stream may raise."""


class CarriedByteStream(ByteStream):
    """``end`` ends the stream as its side does; ``told`` makes our error of what the stream raised."""

    def __init__(self, stream: Stream, *, end: Callable[[], None], told: Callable[[Exception], SandboxError]) -> None:
        self._stream = stream
        self._end = end
        self._told = told
        self._eof = False
        self._closed = False
        self._sending = 0

    async def receive(self) -> bytes:
        while not self._eof:
            try:
                item = await self._stream.receive()
                if item is None:
                    await self._stream.result()
            except FAILURES as error:
                if self._closed:
                    return b""
                raise self._told(error) from error
            if item is None or item[0] == frames.EOF:
                self._eof = True
            elif item[0] == frames.DATA:
                return item[1]
        return b""

    async def send(self, data: bytes) -> None:
        self._sending += 1
        try:
            await self._stream.send(data)
        finally:
            self._sending -= 1

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        if not self._sending:  # else it would wait for the one that sends
            await self._stream.send_eof()
        self._end()
