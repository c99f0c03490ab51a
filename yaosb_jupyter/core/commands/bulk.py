"""A command that writes much: its output is read from the pipe itself, with nobody in between."""

from __future__ import annotations

import asyncio

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.core.commands.forwarding import Chunk, ForwardingStream
from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.tai.outputpipe import OutputPipe
from yaosb_jupyter.tai.runtimes.base import ExecStream
from yaosb_jupyter.types import ExitStatus

BULK = 1 << 20
"""Bytes of stdout after which the pipe is asked for, once."""
DRAIN_GRACE = 0.2
"""How long a command that has ended waits for its output when others hold it open; as in the guest."""
TURN = 1 << 20
"""Bytes after which the loop's other work has its turn."""


class BulkStream(ForwardingStream):
    """``inner``, whose pipe is taken over where it can be. There is no exact order of stdout and stderr then.

    What else happens, stderr and the end, is received beside.
    """

    def __init__(self, inner: ExecStream) -> None:
        self._inner = inner
        self._until_bulk = BULK
        self._until_turn = TURN
        self._pipe: OutputPipe | None = None
        self._piped = 0
        self._beside: asyncio.Task[Chunk | None] | None = None
        self._ended_at: float | None = None
        self._failure: SandboxError | None = None
        self._woken: asyncio.Future[None] | None = None

    @property
    def offset(self) -> int:
        return self._inner.offset + self._piped

    async def receive(self) -> Chunk | None:
        if self._pipe is not None:
            return await self._receive_both(self._pipe)
        chunk = await self._inner.receive()
        if chunk is not None and chunk[0] is ExecChannel.STDOUT and self._until_bulk > 0:
            self._until_bulk -= len(chunk[1])
            if self._until_bulk <= 0:
                self._pipe = await self._inner.take_stdout()
        return chunk

    def receive_now(self) -> Chunk | None:
        if self._pipe is None or self._beside is None or self._beside.done() or not self._is_next(self._pipe):
            return None
        return self._read(self._pipe)

    async def _receive_both(self, pipe: OutputPipe) -> Chunk | None:
        if self._until_turn <= 0:
            self._until_turn = TURN
            await asyncio.sleep(0)
        while True:
            if (chunk := self._take_beside() or self._read(pipe)) is not None:
                return chunk
            if self._ended_at is not None and pipe.closed:
                break
            await self._wait_for_either(pipe)
        if self._failure is not None:
            raise self._failure
        return None

    def _is_next(self, pipe: OutputPipe) -> bool:
        """Whether all output that is before the pipe's has been received, or never will be."""
        return not pipe.closed and (self._ended_at is not None or self._inner.offset >= pipe.offset)

    def _read(self, pipe: OutputPipe) -> Chunk | None:
        """What is in the pipe; closes it at its end."""
        if not self._is_next(pipe):
            return None
        if self._ended_at is not None and self._drain_time() <= 0:
            pipe.leave_after_rest()
        data = pipe.read()
        if data is None:
            return None
        if not data:
            pipe.close()
            return None
        self._piped += len(data)
        self._until_turn -= len(data)
        return ExecChannel.STDOUT, data

    def _take_beside(self) -> Chunk | None:
        if self._ended_at is not None:
            return None
        if self._beside is None:
            self._beside = asyncio.create_task(self._inner.receive())
        if not self._beside.done():
            return None
        done, self._beside, chunk = self._beside, None, None
        try:
            chunk = done.result()
        except SandboxError as error:
            self._failure = error
        if chunk is None:
            self._ended_at = asyncio.get_running_loop().time()
        return chunk

    def _drain_time(self) -> float:
        assert self._ended_at is not None
        return self._ended_at + DRAIN_GRACE - asyncio.get_running_loop().time()

    async def _wait_for_either(self, pipe: OutputPipe) -> None:
        loop = asyncio.get_running_loop()
        woken = self._woken = loop.create_future()
        beside = self._beside

        def wake(_: object = None) -> None:
            if not woken.done():
                woken.set_result(None)

        if beside is not None:
            beside.add_done_callback(wake)
        if reads := self._is_next(pipe):
            loop.add_reader(pipe, wake)
        try:
            await asyncio.wait([woken], timeout=None if self._ended_at is None else max(0.0, self._drain_time()))
        finally:
            if beside is not None:
                beside.remove_done_callback(wake)
            if reads and not pipe.closed:
                loop.remove_reader(pipe)

    async def wait(self) -> ExitStatus:
        while self._pipe is not None and await self.receive() is not None:
            pass
        return await self._inner.wait()

    async def aclose(self) -> None:
        try:
            await self._inner.aclose()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        """Of the pipe; who waits for it is told."""
        if self._beside is not None:
            self._beside.cancel()
            self._beside = None
        if self._pipe is None:
            return
        loop = asyncio.get_running_loop()
        self._ended_at = self._ended_at or loop.time()
        if not self._pipe.closed:
            loop.remove_reader(self._pipe)
            self._pipe.close()
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)
