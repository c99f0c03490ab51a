"""A connected socket and the stream of the link that carries what flows through it."""

from __future__ import annotations

import socket
from collections import deque

from . import frames
from .link import Handler, Stream
from .loop import READ, WRITE, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Deque, Optional

CHUNK = 1 << 18
LINGER = 5.0
"""How long a socket has for taking what the host sent before it went."""


class Carrier(Handler):
    """Carries both ways until both have ended, each on its own; ``over`` is told once, with what broke it if anything.

    Both ways wait for their reader: the socket is read as far as the stream has room, and what the host sends costs
    credit until the socket has taken it.
    """

    def __init__(
        self, loop: Loop, connected: socket.socket, stream: Stream, over: Callable[[Optional[OSError]], None]
    ) -> None:
        self._loop = loop
        self._socket = connected
        self._stream = stream
        self._over = over
        self._waiting: Deque[memoryview] = deque()
        self._reading = True
        self._writing = True
        self._eof = False
        self._leaving = False
        self._ended = False
        self._broken: Optional[OSError] = None
        self._watched = 0
        connected.setblocking(False)
        stream.handler = self
        self._watch()

    # What the host does

    def data(self, payload: bytes) -> None:
        if not self._writing:
            self._stream.took(len(payload))
            return
        self._waiting.append(memoryview(payload))
        if len(self._waiting) == 1:
            self._write()
            self._watch()

    def eof(self) -> None:
        self._eof = True
        self._write()
        self._watch()

    def cancel(self) -> None:
        self._leave()

    def closed(self) -> None:
        self._leave()

    def writable(self) -> None:
        self._watch()

    def lost(self) -> None:
        self._end()

    def _leave(self) -> None:
        """The host has gone: what it sent before still arrives."""
        self._leaving = True
        self._reading = False
        self._write()
        if not self._ended:
            self._loop.later(LINGER, self._end)
            self._watch()

    # What the socket does

    def _ready(self) -> None:
        self._write()
        self._read()
        self._watch()

    def _read(self) -> None:
        room = min(self._stream.room(), CHUNK)
        if not self._reading or room <= 0:
            return
        try:
            data = self._socket.recv(room)
        except BlockingIOError:
            return
        except OSError as error:
            self._broken = error
            self._end()
            return
        if data:
            self._stream.send(frames.DATA, data)
        else:
            self._reading = False
            self._stream.send_eof()
            self._end_if_over()

    def _write(self) -> None:
        try:
            while self._waiting:
                count = self._socket.send(self._waiting[0])
                self._stream.took(count)
                self._waiting[0] = self._waiting[0][count:]
                if not self._waiting[0]:
                    del self._waiting[0]
            if self._eof and self._writing:
                self._writing = False
                self._socket.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            return
        except OSError as error:  # nobody reads there any more, but something may have been said before
            self._broken = error
            self._writing = False
            self._drop()
        self._end_if_over()

    def _watch(self) -> None:
        if self._ended:
            return
        wanted = READ if self._reading and self._stream.room() > 0 else 0
        wanted |= WRITE if self._waiting else 0
        if wanted == self._watched:
            return
        self._watched = wanted
        if wanted:
            self._loop.watch(self._socket.fileno(), wanted, self._ready)
        else:
            self._loop.unwatch(self._socket.fileno())

    # The end

    def _end_if_over(self) -> None:
        if not self._reading and (not self._writing or self._leaving) and not self._waiting:
            self._end()

    def _drop(self) -> None:
        self._stream.took(sum(len(part) for part in self._waiting))
        self._waiting.clear()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._reading = self._writing = False
            self._loop.unwatch(self._socket.fileno())
            self._socket.close()
            self._drop()
            self._over(self._broken)
