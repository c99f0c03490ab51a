"""A port of a sandbox, reached through the daemon."""

from __future__ import annotations

from yaosb_jupyter.daemon import requests as ask
from yaosb_jupyter.daemon.line import Line, told
from yaosb_jupyter.errors import ProtocolError, SandboxError
from yaosb_jupyter.link.carry import CarriedByteStream
from yaosb_jupyter.tai.bytestream import ByteStream


async def dial(line: Line, request: ask.Dial) -> ByteStream:
    """Returns when it is connected. Raises what the daemon refuses it with."""
    stream = await line.open(request)
    try:
        with told(request):
            if await stream.receive_message() is None:
                await stream.result()
                raise ProtocolError("a connection ended before it began")
    except BaseException:
        stream.abandon()
        raise
    return CarriedByteStream(stream, end=stream.abandon, told=lambda error: _our(request, error))


def _our(request: ask.Dial, error: Exception) -> SandboxError:
    try:
        with told(request):
            raise error
    except SandboxError as ours:
        return ours
