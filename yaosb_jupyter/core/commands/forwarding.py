"""A command's stream that leaves all to another one: for those that change some of it."""

from __future__ import annotations

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.options import TerminalSize
from yaosb_jupyter.tai.outputpipe import OutputPipe
from yaosb_jupyter.tai.runtimes.base import ExecStream
from yaosb_jupyter.types import ExitStatus

Chunk = tuple[ExecChannel, bytes]


class ForwardingStream(ExecStream):
    """``_inner`` is to be set before it is used."""

    _inner: ExecStream

    @property
    def background(self) -> bool:
        return self._inner.background

    @property
    def offset(self) -> int:
        return self._inner.offset

    @property
    def input_offset(self) -> int:
        return self._inner.input_offset

    @property
    def lost(self) -> int:
        return self._inner.lost

    async def receive(self) -> Chunk | None:
        return await self._inner.receive()

    def receive_now(self) -> Chunk | None:
        return self._inner.receive_now()

    async def take_stdout(self) -> OutputPipe | None:
        return await self._inner.take_stdout()

    async def send(self, data: bytes) -> None:
        await self._inner.send(data)

    async def close_stdin(self) -> None:
        await self._inner.close_stdin()

    async def wait(self) -> ExitStatus:
        return await self._inner.wait()

    async def signal(self, signum: int) -> None:
        await self._inner.signal(signum)

    async def resize(self, size: TerminalSize) -> None:
        await self._inner.resize(size)

    async def cancel(self, grace: float = 2.0) -> None:
        await self._inner.cancel(grace)

    def defer_acknowledgement(self) -> None:
        self._inner.defer_acknowledgement()

    def acknowledge(self, offset: int) -> None:
        self._inner.acknowledge(offset)

    async def aclose(self) -> None:
        await self._inner.aclose()
