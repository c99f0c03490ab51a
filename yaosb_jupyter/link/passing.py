"""Handing an open descriptor to the process at the other end of a Unix socket.

One side tells on a connection that it holds a descriptor ready, by a token; the other side `claim`s it: it connects
once more to the same socket, shows the token in its HELLO, and gets the descriptor with the answer, which ends that
connection (see docs/link-protocol.md).
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NoReturn

from yaosb_jupyter.errors import ProtocolError, UnavailableError
from yaosb_jupyter.guest import frames
from yaosb_jupyter.link.connection import Connection, Farewell, farewell

FEATURE: Final = "descriptors"
"""Of a HELLO: its side hands out descriptors."""
TOKEN: Final = "descriptor"
"""The field of a HELLO that shows a token."""

_PATIENCE = 10.0


def passes_descriptors(connection: Connection) -> bool:
    """Whether the other side may have descriptors for us."""
    return FEATURE in connection.peer.get("features", ())


async def claim(connection: Connection, token: str) -> int:
    """The descriptor that the other side of ``connection`` holds ready under ``token``; the caller's to close.

    Raises `AuthError` where nothing is held ready under it any more, `ConnectionError`, `ProtocolError`,
    `UnavailableError`.
    """
    hello = frames.encode_json(frames.HELLO, 0, {**connection.hello, TOKEN: token})
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)
        try:
            async with asyncio.timeout(_PATIENCE):
                await loop.sock_connect(sock, connection.extra_info("peername"))
                await loop.sock_sendall(sock, hello)
                await readable(sock)
        except TimeoutError:
            raise UnavailableError("the descriptor was not handed over in time", hint="try again") from None
        except OSError as error:
            raise ConnectionResetError(f"the descriptor could not be asked for: {error}") from error
        return _receive(sock)


def hand_over(connection: Connection, descriptor: int) -> NoReturn:
    """Answers the HELLO of a `claim`, and ends its ``connection``; for that connection's ``check``, which it leaves."""
    answer = frames.encode_json(frames.HELLO, 0, connection.hello)
    try:
        with connection.extra_info("socket").dup() as sock:
            socket.send_fds(sock, [answer], [descriptor])
    except OSError as error:  # who claims and does not read
        raise ProtocolError(f"the descriptor could not be handed over: {error}") from error
    raise Farewell("the descriptor was handed over")


async def readable(sock: socket.socket) -> None:
    """Returns when something has come."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(sock, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sock)


def _receive(sock: socket.socket) -> int:
    # Where the system has no such flag, a command started by another thread in this moment inherits it.
    data, descriptors, _, _ = socket.recv_fds(sock, frames.MAX_PAYLOAD, 1, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
    try:
        _check(data, descriptors)
    except BaseException:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
    os.set_inheritable(descriptors[0], False)
    return descriptors[0]


def _check(data: bytes, descriptors: Sequence[int]) -> None:
    answer = _first_frame(data)
    if answer is None:
        raise ConnectionResetError("the other side ended the connection without an answer")
    if answer.kind == frames.GOAWAY:
        raise farewell(frames.decode_json(answer.payload))
    if answer.kind != frames.HELLO:
        raise ProtocolError("the answer to a token is no HELLO")
    if len(descriptors) != 1:
        raise UnavailableError("the descriptor could not be taken", hint="are too many files open? see: ulimit -n")


def _first_frame(data: bytes) -> frames.Frame | None:
    with suppress(frames.FrameError):
        return next(iter(frames.Decoder().feed(data)), None)
    return None
