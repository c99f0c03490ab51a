"""Ports inside a sandbox, reached through its guest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from yaosb_jupyter.errors import NotAvailableError, PortUnavailableError, ProtocolError, SandboxError
from yaosb_jupyter.link.carry import FAILURES, CarriedByteStream
from yaosb_jupyter.link.connection import Connection
from yaosb_jupyter.link.stream import RemoteError
from yaosb_jupyter.tai.bytestream import ByteStream

PATIENCE = 15.0
"""Longer than the guest's own."""


async def dial(connection: Connection, port: int, *, sandbox: str, silent: Callable[[str], SandboxError]) -> ByteStream:
    """A TCP connection to a port of the sandbox's loopback. ``silent`` makes the error for a guest without an answer.

    Raises `PortUnavailableError`, `SandboxLostError`, `NotAvailableError` where the guest is too old for it.
    """

    def told(error: Exception) -> SandboxError:
        return _told(error, sandbox) if isinstance(error, RemoteError) else silent(str(error) or "no answer in time")

    try:
        stream = connection.open("dial", {"port": port})
    except ConnectionError as error:
        raise told(error) from error
    try:
        async with asyncio.timeout(PATIENCE):
            if await stream.receive_message() is None:
                await stream.result()
                raise ProtocolError("a connection ended before it began")
    except (*FAILURES, TimeoutError) as error:
        stream.abandon()
        raise told(error) from error
    except BaseException:
        stream.abandon()
        raise
    return CarriedByteStream(stream, end=stream.abandon, told=told)


def _told(error: RemoteError, sandbox: str) -> SandboxError:
    match error.code:
        case "PortUnavailableError":
            return PortUnavailableError(str(error)[:500], sandbox=sandbox, hint="is a server running there?")
        case "ProtocolError":
            return NotAvailableError(
                "its guest cannot reach ports", sandbox=sandbox, hint="stop and start the sandbox, which renews it"
            )
    return ProtocolError(f"its guest refused: {error}"[:500], sandbox=sandbox)
