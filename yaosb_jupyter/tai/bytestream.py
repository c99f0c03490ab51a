"""A connection to a port, whatever carries it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class ByteStream(ABC):
    """Bytes both ways, each way with an end of its own.

    Both ways wait for their reader. Not for concurrent use by several readers, nor by several writers. Leaving
    ``async with`` closes it.
    """

    @abstractmethod
    async def receive(self) -> bytes:
        """The next bytes; ``b""`` after the other side's end, or one's own `aclose`.

        Raises `PortUnavailableError` where the other side broke the connection, `SandboxLostError` where the sandbox
        is gone.
        """

    @abstractmethod
    async def send(self, data: bytes) -> None:
        """Waits while the other side does not read. Dropped when that has gone, of which `receive` tells."""

    @abstractmethod
    async def send_eof(self) -> None:
        """Tells the other side that no more follows; it may go on sending. Idempotent."""

    @abstractmethod
    async def aclose(self) -> None:
        """Ends both ways, as a socket's close does: what was sent still arrives, unless the other side is sending.

        Never waits long. Idempotent.
        """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()
