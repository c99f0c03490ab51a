"""What connections have in common, whatever they speak."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

from yaosb_jupyter.errors import PortUnavailableError
from yaosb_jupyter.tai.bytestream import ByteStream

T_co = TypeVar("T_co", covariant=True)
NORMAL = 1000


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """What to connect to, and how. ``timeout`` seconds until it is connected, ``max_message`` bytes of one message."""

    sandbox: str
    port: int
    dial: Callable[[], Awaitable[ByteStream]]
    path: str = "/"
    headers: Mapping[str, str] = field(default_factory=dict)
    subprotocols: tuple[str, ...] = ()
    timeout: float = 30.0
    max_message: int = 64 * 2**20
    reconnect: bool = True

    def unanswered(self) -> PortUnavailableError:
        """What to tell where the server hung up on the request."""
        return PortUnavailableError(
            f"port {self.port}: it ended the connection without an answer",
            sandbox=self.sandbox,
            hint="look at what the server writes",
        )

    @property
    def host(self) -> str:
        return f"localhost:{self.port}"

    def url(self, scheme: str) -> str:
        return f"{scheme}://{self.host}{'' if scheme == 'tcp' else self.path}"


class AsyncAttachment(ABC, Generic[T_co]):
    """A connection to a port of a sandbox. Made by `AsyncSandbox.attach`.

    ``async for`` gives what arrives until the end; leaving ``async with`` closes. Not for concurrent use by several
    readers. ``url`` is the address as it is inside; for one that works here, a browser's too, see `AsyncSandbox.proxy`.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def url(self) -> str:
        return self._url

    @property
    def subprotocol(self) -> str | None:
        """Of a WebSocket: the one that the server chose."""
        return None

    @property
    def close_code(self) -> int | None:
        """Of a WebSocket that has ended: why (RFC 6455); 1006 where the connection broke."""
        return None

    @property
    @abstractmethod
    def close_reason(self) -> str:
        """Why it has ended, in words; ``""`` while it goes on, or where nobody said."""

    @abstractmethod
    async def read(self) -> T_co | None:
        """What comes next: a message, an event, bytes; None at the end, and after `close`.

        Waits as long as nothing comes: silence is no fault. Raises `PortUnavailableError` where the connection broke,
        `ProtocolError` where the other side breaks the protocol or sends more than ``max_message`` at once,
        `SandboxLostError` where the sandbox has ended.
        """

    @abstractmethod
    async def write(self, data: str | bytes) -> None:
        """Sends a message, or bytes (text as UTF-8); waits while the other side does not read.

        Raises `ProtocolError` on an event stream, which goes one way, and after the end.
        """

    @abstractmethod
    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        """Ends it, a WebSocket with ``code`` and ``reason`` (RFC 6455 7.4). Idempotent.

        A WebSocket waits three seconds for the other side's farewell. Raises `InvalidOptionError`.
        """

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T_co:
        item = await self.read()
        if item is None:
            raise StopAsyncIteration
        return item

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
