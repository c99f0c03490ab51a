"""The host's end of one sandbox's link."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from yaosb_jupyter.errors import AuthError, NotRunningError, SandboxError, SandboxLostError
from yaosb_jupyter.guest.frames import FrameError
from yaosb_jupyter.link import pulse
from yaosb_jupyter.link.commands import GuestCommands
from yaosb_jupyter.link.connection import Connection, Hello
from yaosb_jupyter.link.dial import dial
from yaosb_jupyter.link.door import Door
from yaosb_jupyter.link.exec import too_large
from yaosb_jupyter.link.handover import SHOWN
from yaosb_jupyter.link.services import GuestServices
from yaosb_jupyter.tai.bytestream import ByteStream

log = logging.getLogger(__name__)

MAX_STRANGERS = 16
"""Connections that have not shown the key yet; more are turned away."""
CALL_TIMEOUT = 30.0


def new_key() -> str:
    return secrets.token_urlsafe(32)


class GuestLink:
    """Lets the guest that knows ``key`` in by ``door``; the newest connection with the key is the link.

    Whoever else connects - code in the sandbox can reach the door - learns nothing and changes nothing. A guest that
    falls silent loses its link, unless it is ``resting``: told by whoever knows that it stands still. ``services`` of
    this host can be reached from inside. ``on_link`` is told of each new link, ``on_loss`` that one has ended.
    """

    def __init__(
        self,
        door: Door,
        key: str,
        *,
        sandbox: str,
        on_link: Callable[[Connection], None] | None = None,
        on_loss: Callable[[], None] | None = None,
        services: GuestServices | None = None,
    ) -> None:
        self._door = door
        self._key = key
        self._sandbox = sandbox
        self._on_link = on_link
        self._on_loss = on_loss
        self._services = services
        self._connection: Connection | None = None
        self._strangers: set[Connection] = set()
        self._meetings: set[asyncio.Task[None]] = set()
        self._linked = asyncio.Event()
        self._closed = False
        self._end = "it has ended"
        self._pulse: asyncio.Task[None] | None = None
        self.resting = False
        self.commands = GuestCommands(self, sandbox)

    async def listen(self, *, unless_served: bool = False) -> None:
        """Opens the door; see `Door.open`. Raises `RuntimeUnavailableError`."""
        await self._door.open(self._protocol, unless_served=unless_served)

    @property
    def is_up(self) -> bool:
        return self._connection is not None and not self._connection.closed

    async def connected(self, timeout: float) -> Connection:
        """The link, waited for. Raises `SandboxLostError` where the guest does not come in time, and
        `NotRunningError` once this was closed."""
        if not self._closed:
            await self.listen()
        try:
            async with asyncio.timeout(timeout):
                while not self._closed:
                    connection = self._connection
                    if connection is not None and not connection.closed:
                        return connection
                    self._linked.clear()
                    await self._linked.wait()
                raise NotRunningError(self._end, sandbox=self._sandbox, hint="start the sandbox again")
        except TimeoutError:
            raise SandboxLostError(
                f"its guest has not answered for {timeout:g} s",
                sandbox=self._sandbox,
                hint="stop and start the sandbox",
            ) from None

    async def dial(self, port: int) -> ByteStream:
        """Connects to a port inside. Raises `PortUnavailableError`, `SandboxLostError`."""
        return await dial(await self.connected(CALL_TIMEOUT), port, sandbox=self._sandbox, silent=self.silent)

    async def call(
        self, operation: str, arguments: Mapping[str, Any], timeout: float = CALL_TIMEOUT
    ) -> Mapping[str, Any]:
        """Raises `SandboxLostError` or `RemoteError`; `NotRunningError` where it is paused meanwhile;
        `InvalidOptionError` for arguments that are too large."""
        connection = await self.connected(timeout)
        try:
            async with asyncio.timeout(timeout):
                return await connection.call(operation, arguments)
        except (ConnectionError, TimeoutError) as error:
            raise self.silent(str(error) or "no answer in time") from error
        except FrameError as error:
            raise too_large(f"{operation!r}", error, self._sandbox) from error

    def silent(self, cause: str) -> SandboxError:
        """The error for a guest that gave no answer."""
        if self.resting:
            return NotRunningError("it is paused", sandbox=self._sandbox, hint="start it to go on")
        return SandboxLostError(f"its guest did not answer: {cause}", sandbox=self._sandbox)

    async def close(self, reason: str = "") -> None:
        """Stops listening and lets go of the guest, which dials on. Idempotent; there is no way back.

        ``reason``: why the sandbox ended, told to who waits for the link.
        """
        self._closed = True
        if reason:
            self._end = f"it has ended: {reason}"
        self._linked.set()
        await self.commands.close()
        await self._door.close()
        if self._pulse is not None:
            self._pulse.cancel()
            await asyncio.wait([self._pulse])
        for connection in (*self._strangers, *([self._connection] if self._connection else ())):
            await connection.close()
        for meeting in list(self._meetings):
            meeting.cancel()
        if self._meetings:
            await asyncio.gather(*self._meetings, return_exceptions=True)

    # Who comes in

    def _protocol(self) -> asyncio.Protocol:
        if len(self._strangers) >= MAX_STRANGERS:
            return _TurnedAway()

        def check(hello: Hello) -> None:
            self._check(hello)
            if SHOWN in hello:
                self.commands.handovers.meet(connection.detach(), hello)

        connection = Connection(
            dialled=False,
            hello={"features": []},
            check=check,
            handler=None if self._services is None else self._services.serve,
            on_close=self._ended,
        )
        self._strangers.add(connection)
        meeting = asyncio.ensure_future(self._meet(connection))
        self._meetings.add(meeting)
        meeting.add_done_callback(self._meetings.discard)
        return connection

    def _check(self, hello: Hello) -> None:
        key = hello.get("key")
        if not isinstance(key, str) or not hmac.compare_digest(key.encode(errors="replace"), self._key.encode()):
            raise AuthError("this link's key is another")

    async def _meet(self, connection: Connection) -> None:
        try:
            hello = await connection.ready()
        except (OSError, SandboxError) as error:
            log.debug("a connection to the link of %s was refused: %s", self._sandbox, error)
            await connection.close()
            return
        finally:
            self._strangers.discard(connection)
        if SHOWN in hello:
            return
        if self._services is not None and not connection.closed:
            self._services.ask(connection)
        earlier, self._connection = self._connection, connection
        self._linked.set()
        if self._pulse is not None:
            self._pulse.cancel()
        self._pulse = asyncio.create_task(pulse.watch(connection, resting=lambda: self.resting, sandbox=self._sandbox))
        if self._on_link is not None:
            self._on_link(connection)
        if earlier is not None and not earlier.closed:
            await earlier.close("replaced")

    def _ended(self, connection: Connection) -> None:
        self._strangers.discard(connection)
        if connection is self._connection:
            self._linked.clear()
            if self._on_loss is not None and not self._closed:
                self._on_loss()


class _TurnedAway(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
