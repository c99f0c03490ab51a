"""A command that the daemon runs for this client."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Self

from yaosb_jupyter.daemon import requests as ask
from yaosb_jupyter.daemon.line import Line, told
from yaosb_jupyter.daemon.volume import CHANNELS
from yaosb_jupyter.errors import ProtocolError
from yaosb_jupyter.link.stream import RemoteError, Stream
from yaosb_jupyter.tai.runtimes.base import ExecStream
from yaosb_jupyter.types import ExecChannel, ExitStatus
from yaosb_jupyter.wire.codec import from_json

_END_PATIENCE = 15.0
"""Seconds for the daemon to end a command that was cancelled as it began."""


class RemoteExecStream(ExecStream):
    """Made by `begin`. A client that goes away ends its command: the daemon sees its connection end."""

    def __init__(self, line: Line, request: ask.Exec, stream: Stream) -> None:
        self._line = line
        self._request = request
        self._stream = stream
        self._kept: deque[tuple[ExecChannel, bytes]] = deque()
        self._status: ExitStatus | None = None

    @classmethod
    async def begin(cls, line: Line, request: ask.Exec) -> Self:
        """Returns when the command was accepted. Raises what the daemon refuses it with; cancelled, nothing runs."""
        stream = await line.open(request)
        try:
            with told(request):
                if await stream.receive_message() is None:
                    await stream.result()
                    raise ProtocolError("a command ended before it began")
        except asyncio.CancelledError:
            stream.cancel()
            with contextlib.suppress(RemoteError, ConnectionError, TimeoutError):
                async with asyncio.timeout(_END_PATIENCE):
                    await stream.result()
            raise
        return cls(line, request, stream)

    async def receive(self) -> tuple[ExecChannel, bytes] | None:
        if self._kept:
            return self._kept.popleft()
        with told(self._request):
            while (item := await self._stream.receive()) is not None:
                if item[0] in CHANNELS:
                    return CHANNELS[item[0]], item[1]
            return None

    async def send(self, data: bytes) -> None:
        await self._stream.send(data)

    async def close_stdin(self) -> None:
        if self._request.options.stdin:
            await self._stream.send_eof()

    async def wait(self) -> ExitStatus:
        self._kept.clear()
        if self._status is None:
            with told(self._request):
                answer = await self._stream.result()
            self._status = from_json(ExitStatus, answer.get("value"))
        return self._status

    async def signal(self, signum: int) -> None:
        if not self._stream.closed:
            await self._line.call(type(None), ask.ExecSignal(stream=self._stream.id, signal=signum))

    async def cancel(self, grace: float = 2.0) -> None:
        if self._stream.closed:
            return
        await self._line.call(type(None), ask.ExecCancel(stream=self._stream.id, grace=grace))
        # What it wrote before may still be read; taking it here lets the daemon let go of the command.
        while (item := await self._stream.receive()) is not None:
            if item[0] in CHANNELS:
                self._kept.append((CHANNELS[item[0]], item[1]))
