"""A connection as its caller holds it: bytes that move are use of the sandbox, being open is not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.tai.bytestream import ByteStream


class TrackedByteStream(ByteStream):
    """``used`` is told whenever bytes have moved, ``closed`` once; ``lost`` what to tell instead of an error."""

    def __init__(
        self,
        inner: ByteStream,
        *,
        used: Callable[[], None],
        closed: Callable[[ByteStream], None],
        lost: Callable[[SandboxError], Awaitable[SandboxError]],
    ) -> None:
        self._inner = inner
        self._used = used
        self._closed = closed
        self._lost = lost

    async def receive(self) -> bytes:
        try:
            data = await self._inner.receive()
        except SandboxError as error:
            raise await self._lost(error) from error
        if data:
            self._used()
        return data

    async def send(self, data: bytes) -> None:
        try:
            await self._inner.send(data)
        except SandboxError as error:
            raise await self._lost(error) from error
        self._used()

    async def send_eof(self) -> None:
        await self._inner.send_eof()

    async def aclose(self) -> None:
        self._closed(self)
        await self._inner.aclose()
