"""Where no socket can be shared: the guest listens inside, and takes as its link what a relay of the host brings.

Any code in the sandbox can connect. The host's first bytes, the knock, are known to it and the guest only, and tell
nothing of the link's key: whoever took the socket's name after the guest's end learns no key by listening there.
"""

from __future__ import annotations

import socket

from .loop import READ, Loop, Timer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict

STRANGERS = 16
PATIENCE = 10.0
"""How long one may take to knock."""
PAUSE = 0.1


class Reception:
    """Listens at the abstract socket ``name``; only one guest of a sandbox can. Raises `OSError`."""

    def __init__(self, loop: Loop, name: str, knock: bytes, take: Callable[[socket.socket], None]) -> None:
        self._loop = loop
        self._knock = knock
        self._take = take
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(b"\0" + name.encode())
        self._listener.listen(STRANGERS)
        self._listener.setblocking(False)
        self._strangers: Dict[int, Stranger] = {}
        self._listen()

    def _listen(self) -> None:
        self._loop.watch(self._listener.fileno(), READ, self._accept)

    def _accept(self) -> None:
        try:
            connected, _ = self._listener.accept()
        except BlockingIOError:
            return  # whoever came has gone again
        except OSError:  # no descriptor is left for it
            self._loop.unwatch(self._listener.fileno())
            self._loop.later(PAUSE, self._listen)
            return
        if len(self._strangers) >= STRANGERS:
            next(iter(self._strangers.values())).leave()
        connected.setblocking(False)
        Stranger(self._loop, connected, self._knock, self._strangers, self._take)


class Stranger:
    """A connection that has not knocked yet."""

    def __init__(
        self,
        loop: Loop,
        connected: socket.socket,
        knock: bytes,
        strangers: Dict[int, Stranger],
        take: Callable[[socket.socket], None],
    ) -> None:
        self._loop = loop
        self._socket = connected
        self._knock = knock
        self._said = b""
        self._take = take
        self._strangers = strangers
        self._fd = connected.fileno()
        strangers[self._fd] = self
        self._patience: Timer = loop.later(PATIENCE, self.leave)
        loop.watch(self._fd, READ, self._hear)

    def _hear(self) -> None:
        try:
            said = self._socket.recv(len(self._knock) - len(self._said))
        except BlockingIOError:
            return
        except OSError:
            said = b""
        self._said += said
        if not said:
            self.leave()
        elif len(self._said) == len(self._knock):
            # All bytes are compared: the time it takes tells nothing.
            if sum(a ^ b for a, b in zip(self._said, self._knock)):
                self.leave()
            else:
                self._let_go()
                self._take(self._socket)

    def _let_go(self) -> None:
        self._patience.cancel()
        self._loop.unwatch(self._fd)
        del self._strangers[self._fd]

    def leave(self) -> None:
        self._let_go()
        self._socket.close()
