"""Sockets inside the sandbox, whose connections are carried to services of the host.

A service ``grpc`` listens in a directory that only this sandbox's user can enter; the commands started from then on
find it by ``YAO_GRPC_ADDR=unix://PATH``.
"""

from __future__ import annotations

import binascii
import functools
import os
import re
import socket

from .carry import Carrier
from .link import Stream
from .loop import READ, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional, Set

MAX_CARRIED = 128
"""Connections at a time, to all services; more wait in the kernel's queue."""
BACKLOG = 256
"""Of each service; a Unix socket refuses whoever comes when its queue is full."""
PAUSE = 0.1
"""Before the next try where there was no descriptor left for a connection."""

_NAME = re.compile("[a-z]{1,16}")


class Listeners:
    """``open_stream`` opens one to the host, None without a link; ``reachable``: commands can open Unix sockets."""

    def __init__(
        self, loop: Loop, open_stream: Callable[[Dict[str, Any]], Optional[Stream]], *, reachable: bool
    ) -> None:
        self._loop = loop
        self._open_stream = open_stream
        self._reachable = reachable
        self._directory = ""
        self._listening: Dict[str, socket.socket] = {}
        self._carried: Set[Carried] = set()

    def operations(self) -> Dict[str, Callable[[Stream, Dict[str, Any]], None]]:
        return {"listen": self._listen}

    def begin(self, service: str) -> str:
        """Listens, if it does not yet; returns the address. Raises `OSError`, or `ValueError` for a bad name."""
        if not _NAME.fullmatch(service):
            raise ValueError("service %r" % service)
        if not self._reachable:
            raise OSError("commands cannot open Unix sockets here")
        variable = "YAO_%s_ADDR" % service.upper()
        if service not in self._listening:
            path = os.path.join(self._made_directory(), service)
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                listener.bind(path)
                listener.listen(BACKLOG)
            except OSError:
                listener.close()
                raise
            listener.setblocking(False)
            self._listening[service] = listener
            os.environ[variable] = "unix://" + path
            self._resume()
        return os.environ[variable]

    def _made_directory(self) -> str:
        if not self._directory:
            name = "yaosb-" + binascii.hexlify(os.urandom(6)).decode()
            path = os.path.join(os.environ.get("TMPDIR") or "/tmp", name)
            os.mkdir(path, 0o700)
            self._directory = path
        return self._directory

    def _listen(self, stream: Stream, request: Dict[str, Any]) -> None:
        try:
            stream.close({"address": self.begin(request["service"])})
        except OSError as error:
            stream.fail("NotAvailableError", "no socket can be offered: %s" % error)

    def _accept(self, service: str) -> None:
        try:
            connected, _ = self._listening[service].accept()
        except BlockingIOError:
            return  # whoever came has gone again
        except OSError:
            self._pause()
            self._loop.later(PAUSE, self._resume)
            return
        stream = self._open_stream({"op": "accept", "service": service})
        if stream is None:
            connected.close()
            return
        self._carried.add(Carried(self._loop, connected, stream, self._gone))
        if len(self._carried) >= MAX_CARRIED:
            self._pause()

    def _gone(self, carried: Carried) -> None:
        self._carried.discard(carried)
        self._resume()

    def _pause(self) -> None:
        for listener in self._listening.values():
            self._loop.unwatch(listener.fileno())

    def _resume(self) -> None:
        if len(self._carried) < MAX_CARRIED:
            for service, listener in self._listening.items():
                self._loop.watch(listener.fileno(), READ, functools.partial(self._accept, service))


class Carried(Carrier):
    """A connection to a service; ``gone`` is told when both the socket and the stream have ended."""

    def __init__(self, loop: Loop, connected: socket.socket, stream: Stream, gone: Callable[[Carried], None]) -> None:
        self._gone = gone
        super().__init__(loop, connected, stream, self._socket_over)

    def closed(self) -> None:
        super().closed()
        self._tell()

    def lost(self) -> None:
        super().lost()
        self._tell()

    def _socket_over(self, broken: Optional[OSError]) -> None:
        if broken is not None:
            self._stream.cancel()
        self._tell()

    def _tell(self) -> None:
        if self._ended and not self._stream.open:
            self._gone(self)
