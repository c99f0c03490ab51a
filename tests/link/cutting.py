"""A guest whose link goes through a proxy that cuts it, frame by frame."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.guest.rig import Guest, guest
from yaosb_jupyter.guest import frames


class CuttingProxy:
    """Carries frames between those who dial ``path`` and ``target``; `cut_after` so many it closes both ends.

    The frame at which it cuts is lost, and with it whatever is under way in either direction.
    """

    def __init__(self, path: Path, target: Path) -> None:
        self.path = path
        self._target = target
        self._left: int | None = None
        self._again = False
        self._awaited = b""
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.carried = 0
        self.cuts = 0
        self.refusing = False

    async def open(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, str(self.path))

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut_after(self, count: int | None, *, again: bool = False, only_to: str = "") -> None:
        """Cuts when ``count`` more frames were carried; ``again`` and so on. None for no more.

        ``only_to``: counts from the opening of such a stream.
        """
        self._left = count
        self._again = again
        self._count = count
        self._awaited = only_to.encode()

    def cut(self) -> None:
        """Now."""
        for task in list(self._tasks):
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self.refusing:
            writer.close()
            return
        try:
            far_reader, far_writer = await asyncio.open_unix_connection(str(self._target))
        except OSError:
            writer.close()
            return
        ways = [
            asyncio.create_task(self._carry(reader, far_writer)),
            asyncio.create_task(self._carry(far_reader, writer)),
        ]
        try:
            with contextlib.suppress(asyncio.CancelledError):  # by `cut`: asyncio would log it
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for end in (writer, far_writer):
                end.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        decoder = frames.Decoder()
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(2**16):
                for frame in decoder.feed(data):
                    if self._awaited and frame.kind == frames.OPEN and b'"op":"%b"' % self._awaited in frame.payload:
                        self._awaited = b""
                    if frame.kind != frames.HELLO and not self._awaited and self._is_cut():
                        return
                    writer.write(frames.encode(*frame))
                await writer.drain()

    def _is_cut(self) -> bool:
        if self._left == 0:
            self._left = self._count if self._again else None
            self.cuts += 1
            return True
        if self._left is not None:
            self._left -= 1
        self.carried += 1
        return False


@asynccontextmanager
async def cut_guest(directory: Path, **config: Any) -> AsyncIterator[tuple[Guest, CuttingProxy]]:
    """A guest and the proxy that its link goes through."""
    proxy = CuttingProxy(directory / "proxy.sock", directory / "link.sock")
    await proxy.open()
    try:
        async with guest(directory, socket=str(directory / "proxy.sock"), **config) as running:
            await running.link.connected(10)
            yield running, proxy
    finally:
        await proxy.close()
