"""`Attachment`: a port of a sandbox in its own protocol, for programs that do not use asyncio."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Self, TypeVar

from yaosb_jupyter.blocking.face import Face
from yaosb_jupyter.blocking.loop import Loop
from yaosb_jupyter.tai.connect.base import NORMAL, AsyncAttachment

T_co = TypeVar("T_co", covariant=True)


class Attachment(Face, Generic[T_co]):
    """``for item in attachment`` gives what arrives; see `AsyncAttachment`. Leaving ``with`` closes it."""

    def __init__(self, loop: Loop, inner: AsyncAttachment[T_co]) -> None:
        super().__init__(loop)
        self._inner: AsyncAttachment[T_co] = inner

    @property
    def url(self) -> str:
        return self._inner.url

    @property
    def subprotocol(self) -> str | None:
        """Of a WebSocket: the one that the server chose."""
        return self._inner.subprotocol

    @property
    def close_code(self) -> int | None:
        """Of a WebSocket that has ended: why (RFC 6455); 1006 where the connection broke."""
        return self._inner.close_code

    @property
    def close_reason(self) -> str:
        """Why it has ended, in words; ``""`` while it goes on, or where nobody said."""
        return self._inner.close_reason

    def read(self) -> T_co | None:
        """What comes next: a message, an event, bytes; None at the end. See `AsyncAttachment.read`."""
        return self._run(self._inner.read)

    def write(self, data: str | bytes) -> None:
        """Sends a message, or bytes (text as UTF-8). Raises `ProtocolError` on an event stream, and after the end."""
        self._run(lambda: self._inner.write(data))

    def close(self, code: int = NORMAL, reason: str = "") -> None:
        """Ends it, a WebSocket with ``code`` and ``reason``. Idempotent."""
        self._run(lambda: self._inner.close(code, reason))

    def __iter__(self) -> Iterator[T_co]:
        return self._iterate(self._inner.__aiter__)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
