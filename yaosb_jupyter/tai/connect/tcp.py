"""Plain TCP."""

from __future__ import annotations

from yaosb_jupyter.errors import ProtocolError, SandboxError
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.connect.base import NORMAL, AsyncAttachment, Endpoint


async def open_tcp(endpoint: Endpoint) -> TcpAttachment:
    return TcpAttachment(endpoint, await endpoint.dial())


class TcpAttachment(AsyncAttachment[bytes]):
    def __init__(self, endpoint: Endpoint, stream: ByteStream) -> None:
        super().__init__(endpoint.url("tcp"))
        self._sandbox = endpoint.sandbox
        self._stream = stream
        self._closed = False
        self._close_reason = ""
        self._failure: SandboxError | None = None

    @property
    def close_reason(self) -> str:
        return self._close_reason

    async def read(self) -> bytes | None:
        if self._closed:
            return None
        try:
            data = await self._stream.receive()
        except SandboxError as error:
            self._failure = error
            raise
        if not data:
            self._close_reason = self._close_reason or "the other side has ended it"
        return data or None

    async def write(self, data: str | bytes) -> None:
        if self._closed:
            raise ProtocolError("the connection was closed here", sandbox=self._sandbox, hint="attach again")
        if self._failure is not None:
            raise self._failure
        await self._stream.send(data.encode() if isinstance(data, str) else data)

    async def close(self, code: int = NORMAL, reason: str = "") -> None:  # noqa: ARG002 - TCP tells neither
        if not self._closed:
            self._closed = True
            self._close_reason = self._close_reason or reason or "closed here"
            await self._stream.aclose()
