"""TCP to the ports of the sandbox, for the host."""

from __future__ import annotations

import errno
import os
import socket

from .carry import Carrier
from .link import Handler, Stream
from .loop import WRITE, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional

LOOPBACK = {"127.0.0.1": socket.AF_INET, "::1": socket.AF_INET6}
"""Tried in this order: a server that listens at ``localhost`` may have chosen either."""
PATIENCE = 10.0
CODE = "PortUnavailableError"


def operations(loop: Loop) -> Dict[str, Callable[[Stream, Dict[str, Any]], None]]:
    return {"dial": lambda stream, request: _dial(loop, stream, request)}


def _dial(loop: Loop, stream: Stream, request: Dict[str, Any]) -> None:
    port = request["port"]
    hosts = [request["host"]] if "host" in request else list(LOOPBACK)
    if not isinstance(port, int) or not 1 <= port <= 65535 or hosts[0] not in LOOPBACK:
        raise ValueError("port %r of host %r" % (port, hosts[0]))
    Dialling(loop, stream, hosts, port)


class Dialling(Handler):
    """Until one of the hosts answers, or none does."""

    def __init__(self, loop: Loop, stream: Stream, hosts: List[str], port: int) -> None:
        self._loop = loop
        self._stream = stream
        self._hosts = hosts
        self._port = port
        self._socket: Optional[socket.socket] = None
        self._why = 0
        self._patience = loop.later(PATIENCE, self._give_up)
        stream.handler = self
        self._try_next()

    def _try_next(self) -> None:
        if not self._hosts:
            self._refuse(_reason(self._why))
            return
        host = self._hosts.pop(0)
        try:
            self._socket = socket.socket(LOOPBACK[host], socket.SOCK_STREAM)
            self._socket.setblocking(False)
            result = self._socket.connect_ex((host, self._port))
        except OSError as error:  # a kernel without this family, or a confinement
            result = error.errno or errno.EAFNOSUPPORT
        if result == errno.EINPROGRESS and self._socket is not None:
            self._loop.watch(self._socket.fileno(), WRITE, self._settled)
        else:
            self._judge(result)

    def _settled(self) -> None:
        assert self._socket is not None
        self._loop.unwatch(self._socket.fileno())
        self._judge(self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))

    def _judge(self, result: int) -> None:
        if result or self._socket is None:
            self._why = self._why or result
            self._close()
            self._try_next()
            return
        self._patience.cancel()
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream.send_message({"connected": True})
        Carrier(self._loop, self._socket, self._stream, self._over)

    def _over(self, error: Optional[OSError]) -> None:
        if error is None:
            self._stream.close({})
        else:
            self._refuse("the connection broke: %s" % (error.strerror or error))

    def _refuse(self, reason: str) -> None:
        self._patience.cancel()
        self._stream.fail(CODE, "port %d: %s" % (self._port, reason))

    def _give_up(self) -> None:
        self._close()
        self._refuse("it does not answer")

    def cancel(self) -> None:
        self.lost()
        self._stream.close({})

    def lost(self) -> None:
        self._patience.cancel()
        self._close()

    def _close(self) -> None:
        if self._socket is not None:
            self._loop.unwatch(self._socket.fileno())
            self._socket.close()
            self._socket = None


def _reason(number: int) -> str:
    return "nothing listens there" if number == errno.ECONNREFUSED else os.strerror(number)
