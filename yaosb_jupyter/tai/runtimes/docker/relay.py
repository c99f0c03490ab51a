"""The door of a guest that no socket can be shared with: an engine exec runs the relay, and carries its link.

The guest listens inside at a socket whose name, as the knock that opens it, comes from the link's key.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from typing import cast

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.errors import NotFoundError, NotRunningError, ProtocolError, SandboxError
from yaosb_jupyter.link.door import ComeIn, Door
from yaosb_jupyter.tai.runtimes.docker.demux import Demultiplexer
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.http import Connection
from yaosb_jupyter.tai.runtimes.docker.spec import GUEST_COMMAND

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 15.0
LASTING = 10.0
"""A relay that was up for so many seconds did its work: the next try follows soon."""

log = logging.getLogger(__name__)


def reception(key: str) -> str:
    """The name of the socket inside."""
    return "yaosb-" + hashlib.sha256(f"reception {key}".encode()).hexdigest()[:16]


def knock(key: str) -> str:
    """What the relay's host says first; tells nothing of the key."""
    return hashlib.sha256(f"knock {key}".encode()).hexdigest()


class RelayDoor(Door):
    """Keeps a relay up while the container runs."""

    def __init__(self, engine: Engine, runtime_id: str, key: str) -> None:
        self._engine = engine
        self._runtime_id = runtime_id
        self._key = key
        self._keeper: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        return self._keeper is not None and not self._keeper.done()

    async def open(self, come_in: ComeIn, *, unless_served: bool = False) -> None:  # noqa: ARG002 - nothing tells
        if not self.is_open:
            self._keeper = asyncio.create_task(self._keep(come_in))

    async def _keep(self, come_in: ComeIn) -> None:
        pause = FIRST_PAUSE
        while True:
            began = time.monotonic()
            try:
                await self._carry(come_in)
            except (NotFoundError, NotRunningError):
                return
            except SandboxError as error:
                log.debug("the relay to %s failed: %s", self._runtime_id, error)
            pause = FIRST_PAUSE if time.monotonic() > began + LASTING else min(2 * pause, LONGEST_PAUSE)
            await asyncio.sleep(pause)

    async def _carry(self, come_in: ComeIn) -> None:
        argv = [*GUEST_COMMAND, "relay", reception(self._key)]
        made = await self._engine.call(
            lambda client: client.exec_create(self._runtime_id, argv, stdin=True), sandbox=self._runtime_id
        )
        connection = await self._engine.upgrade(
            self._engine.target("exec", made["Id"], "start"), {"Detach": False, "Tty": False}, sandbox=self._runtime_id
        )
        try:
            await connection.write(knock(self._key).encode())
            carried = await connection.hand_over(lambda: _Unwrapped(come_in(), connection))
        except ConnectionError as error:
            log.debug("the relay to %s broke: %s", self._runtime_id, error)
            await connection.aclose()
            return
        except BaseException:
            await connection.aclose()
            raise
        try:
            await carried.ended.wait()
        finally:
            await connection.aclose()
        if carried.complaint:
            log.debug("the relay to %s said: %s", self._runtime_id, carried.complaint.decode(errors="replace"))

    async def close(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.wait([keeper])


class _Unwrapped(asyncio.Protocol):
    """Gives ``inner`` what the relay writes, without the engine's headers.

    ``connection`` is kept: what it was made with ends the transport when it is forgotten.
    """

    def __init__(self, inner: asyncio.Protocol, connection: Connection) -> None:
        self._inner = inner
        self._connection: Connection | None = connection
        self._demultiplexer = Demultiplexer()
        self._transport: asyncio.BaseTransport | None = None
        self.complaint = b""
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        try:
            for channel, piece in self._demultiplexer.feed(memoryview(data)):
                if channel is ExecChannel.STDOUT:
                    self._inner.data_received(cast(bytes, piece))  # for a link, which copies it
                elif len(self.complaint) < 1000:
                    self.complaint += bytes(piece[:1000])
        except ProtocolError as error:
            self.complaint = str(error).encode()
            assert self._transport is not None
            self._transport.close()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(exc)
        self._connection = None
        self.ended.set()
