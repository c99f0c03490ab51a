"""The daemon's listening end: lets clients in and serves them."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import secrets
import socket
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from yaosb_jupyter.core.service import Service
from yaosb_jupyter.daemon.control import Control
from yaosb_jupyter.daemon.offers import Peer
from yaosb_jupyter.daemon.operations import Session, serve
from yaosb_jupyter.errors import AuthError
from yaosb_jupyter.link.connection import Connection
from yaosb_jupyter.link.passing import FEATURE, TOKEN, hand_over
from yaosb_jupyter.version import __version__

log = logging.getLogger(__name__)

_BACKLOG = 128
_CLOSE_PATIENCE = 10.0
_PEER = struct.Struct("3i")


class Server:
    """Serves clients on a Unix socket until `close`. ``service`` makes each client's."""

    def __init__(self, path: Path, secret: str, service: Callable[[], Service], control: Control) -> None:
        self._path = path
        self._secret = secret
        self._service = service
        self._control = control
        self._server: asyncio.Server | None = None
        self._instance = secrets.token_hex(8)

    async def open(self) -> None:
        """Replaces a socket that a daemon left behind: whoever opens one holds the data directory's lock."""
        bound = await asyncio.to_thread(_bind, self._path)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self._accept, sock=bound, backlog=_BACKLOG)

    async def close(self, reason: str) -> None:
        """Takes no more clients and ends the connections, and with them their commands."""
        if self._server is None:
            return
        self._server.close()
        await asyncio.to_thread(self._path.unlink, missing_ok=True)
        endings = [asyncio.create_task(each.close(reason)) for each in self._control.connections]
        if endings:
            _, late = await asyncio.wait(endings, timeout=_CLOSE_PATIENCE)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._control.held.close()

    def _accept(self) -> Connection:
        session = Session(
            service=self._service(),
            control=self._control,
            departed=lambda: process_ended(client.pid),
            offer=lambda descriptor: self._control.offers.offer(descriptor, client),
        )
        client = Peer(0, None)

        def admit(hello: Mapping[str, Any]) -> None:
            nonlocal client
            client = self._admit(connection, hello)
            if TOKEN in hello:
                hand_over(connection, self._control.offers.take(hello[TOKEN], client))
            self._control.connections.add(connection)
            log.debug("client %s is connected", hello.get("pid"))

        connection = Connection(
            dialled=False,
            hello={
                "version": __version__,
                "pid": os.getpid(),
                "instance": self._instance,
                "features": [FEATURE],
            },
            check=admit,
            handler=lambda stream: serve(session, stream),
            on_close=self._control.connections.discard,
        )
        return connection

    def _admit(self, connection: Connection, hello: Mapping[str, Any]) -> Peer:
        """The client's process. Raises `AuthError`."""
        client = peer(connection.extra_info("socket"))
        if client.uid not in (None, 0, os.geteuid()):
            raise AuthError(f"user {client.uid} may not use this daemon", hint="each user has a daemon of their own")
        given = hello.get("secret")
        if not isinstance(given, str) or not hmac.compare_digest(given.encode(), self._secret.encode()):
            raise AuthError(
                "the secret is wrong", hint="where its file was changed or removed: stop the daemon by its process id"
            )
        return client


def _bind(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(str(path))
        path.chmod(0o600)
    except BaseException:
        bound.close()
        raise
    return bound


def peer(sock: socket.socket) -> Peer:
    """Who is at the other end of a Unix socket."""
    if not hasattr(socket, "SO_PEERCRED"):
        return Peer(0, None)
    pid, uid, _ = _PEER.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return Peer(int(pid), int(uid))


async def process_ended(pid: int) -> None:
    """Returns when a process of this host has ended; never where the system does not tell."""
    ended = asyncio.Event()
    if pid <= 0 or not hasattr(os, "pidfd_open"):
        await ended.wait()
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
