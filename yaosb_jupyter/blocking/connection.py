"""`Connection`: a port of a sandbox, for programs that do not use asyncio."""

from __future__ import annotations

from typing import Self

from yaosb_jupyter.blocking.face import Face
from yaosb_jupyter.blocking.loop import Loop
from yaosb_jupyter.tai.bytestream import ByteStream


class Connection(Face):
    """Bytes both ways, each way with an end of its own; see `ByteStream`. Leaving ``with`` closes it."""

    def __init__(self, loop: Loop, inner: ByteStream) -> None:
        super().__init__(loop)
        self._inner = inner

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def receive(self) -> bytes:
        """The next bytes; ``b""`` after the other side's end. Raises `PortUnavailableError`, `SandboxLostError`."""
        return self._run(self._inner.receive)

    def send(self, data: bytes) -> None:
        """Waits while the other side does not read."""
        self._run(lambda: self._inner.send(data))

    def send_eof(self) -> None:
        """Tells the other side that no more follows; it may go on sending."""
        self._run(self._inner.send_eof)

    def close(self) -> None:
        """Ends both ways; see `ByteStream.aclose`. Idempotent."""
        self._run(self._inner.aclose)
