"""Where a guest's connections come in."""

from __future__ import annotations

import asyncio
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from yaosb_jupyter.errors import RuntimeUnavailableError
from yaosb_jupyter.tai.threads import in_thread

ComeIn = Callable[[], asyncio.Protocol]
"""Makes the protocol of one connection: as of a server."""


class Door(ABC):
    """Lets connections in while it is open."""

    @property
    @abstractmethod
    def is_open(self) -> bool: ...

    @abstractmethod
    async def open(self, come_in: ComeIn, *, unless_served: bool = False) -> None:
        """No-op when open. ``unless_served``: where another process has opened it, that is left in peace.

        Raises `RuntimeUnavailableError`.
        """

    @abstractmethod
    async def close(self) -> None:
        """Lets nobody in any more; who is in stays. Idempotent."""


BACKLOG = 64
MAX_ARRIVALS = 50
REST = 1.0


class SocketDoor(Door):
    """A Unix socket at ``path``, of any length, that the guest dials.

    Code in the sandbox can dial it too, again and again: after `MAX_ARRIVALS` within `REST` seconds nobody is let in
    for as long, so that other sandboxes are served meanwhile.
    """

    def __init__(self, path: Path, *, sandbox: str) -> None:
        self._path = path
        self._sandbox = sandbox
        self._opening = asyncio.Lock()
        self._accepting: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        return self._accepting is not None

    async def open(self, come_in: ComeIn, *, unless_served: bool = False) -> None:
        async with self._opening:
            if self._accepting is None:
                await self._open(come_in, unless_served)

    async def _open(self, come_in: ComeIn, unless_served: bool) -> None:
        bound: list[socket.socket] = []
        try:
            await in_thread(lambda: bound.extend(_bind(self._path, unless_served=unless_served)))
        except asyncio.CancelledError:
            for listener in bound:
                listener.close()
            raise
        except OSError as error:
            raise RuntimeUnavailableError(f"cannot listen at {self._path}: {error}", sandbox=self._sandbox) from error
        if bound:
            self._accepting = asyncio.create_task(_accept(bound[0], come_in))

    async def close(self) -> None:
        accepting, self._accepting = self._accepting, None
        if accepting is not None:
            accepting.cancel()
            await asyncio.wait([accepting])


async def _accept(listener: socket.socket, come_in: ComeIn) -> None:
    loop = asyncio.get_running_loop()
    arrivals, since = 0, loop.time()
    with listener:
        while True:
            try:
                connected, _ = await loop.sock_accept(listener)
            except OSError:  # no descriptor is left for it
                await asyncio.sleep(REST)
                continue
            await loop.connect_accepted_socket(come_in, connected)
            arrivals += 1
            if loop.time() > since + REST:
                arrivals, since = 0, loop.time()
            elif arrivals >= MAX_ARRIVALS:
                await asyncio.sleep(REST)


def _bind(path: Path, *, unless_served: bool) -> Sequence[socket.socket]:
    """The listening socket, or none where another listens that is to be left in peace."""
    with _short(path) as address:
        if unless_served and _served(address):
            return ()
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(address)
            path.chmod(0o666)  # the directory above it keeps others out
            listener.listen(BACKLOG)
            listener.setblocking(False)
        except OSError:
            listener.close()
            raise
        return (listener,)


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """A name of at most 107 bytes, which is all that the kernel takes."""
    if len(os.fsencode(path)) <= 107:
        yield str(path)
        return
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def _served(address: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(address)
        except OSError:
            return False
        return True
