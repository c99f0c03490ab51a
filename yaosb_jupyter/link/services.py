"""The host's services for what runs in a sandbox: connections made inside to the guest's sockets, served here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from yaosb_jupyter.errors import SandboxLostError
from yaosb_jupyter.link.carry import FAILURES, CarriedByteStream
from yaosb_jupyter.link.connection import Connection
from yaosb_jupyter.link.stream import RemoteError, Stream
from yaosb_jupyter.tai.bytestream import ByteStream

log = logging.getLogger(__name__)

MAX_CARRIED = 128
"""Connections of one sandbox at a time. A guest that keeps to the rules opens no more."""

ServiceHandler = Callable[[ByteStream, str], Awaitable[None]]
"""Serves one connection made inside the sandbox of that uid, which the link vouches for. Cancelled with it."""
Services = Mapping[str, ServiceHandler]
"""By name: small letters, at most 16. The commands find ``grpc`` by ``YAO_GRPC_ADDR``."""
NO_SERVICES: Services = MappingProxyType({})


class GuestServices:
    """The services that one sandbox is offered."""

    def __init__(self, services: Services, sandbox: str) -> None:
        self._services = services
        self._sandbox = sandbox
        self._carried = 0
        self._asking: set[asyncio.Task[None]] = set()

    def ask(self, connection: Connection) -> None:
        """Asks the guest to listen. What is opened on the link after this finds the sockets there."""
        for name in self._services:
            stream = connection.open("listen", {"service": name})
            task = asyncio.ensure_future(self._note(name, stream))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def _note(self, name: str, stream: Stream) -> None:
        try:
            await stream.result()
        except RemoteError as error:
            log.warning("sandbox %s: it cannot reach the service %s: %s", self._sandbox, name, str(error)[:500])
        except FAILURES:
            pass  # the link broke; the next one is asked again

    async def serve(self, stream: Stream) -> None:
        """Serves a stream that the guest opened."""
        handler = self._services.get(str(stream.request.get("service")))
        if stream.request.get("op") != "accept" or handler is None:
            stream.fail({"code": "NotFoundError", "message": "there is no such service"})
            return
        if self._carried >= MAX_CARRIED:
            stream.fail({"code": "LimitExceededError", "message": f"{MAX_CARRIED} connections are the limit"})
            return
        self._carried += 1
        try:
            async with CarriedByteStream(stream, end=stream.close, told=self._lost) as carried:
                await handler(carried, self._sandbox)
        except SandboxLostError:
            pass  # whoever was served has gone
        finally:
            self._carried -= 1

    def _lost(self, error: Exception) -> SandboxLostError:
        return SandboxLostError(f"its link broke: {error!r}", sandbox=self._sandbox)
