"""Taking over the pipe that a command in a sandbox writes to: its guest sends it over a connection of its own.

The guest is not trusted. What comes must be one descriptor of a pipe; that pipe is opened anew, so that the sandbox
cannot make reading wait, and what came is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from yaosb_jupyter.guest import frames
from yaosb_jupyter.link.passing import readable
from yaosb_jupyter.tai.outputpipe import OutputPipe

OPERATION: Final = "hand_over"
SHOWN: Final = "descriptor"
"""The field of a HELLO that names the command whose pipe follows."""
PATIENCE = 10.0
PIPE_SIZE = 1 << 20
MAX_OFFSET = 1 << 62

_HELLO = {"major": frames.MAJOR, "minor": frames.MINOR, "features": []}


class Handover:
    """Of one command. ``taken``: its pipe was taken over, and the guest has been told so."""

    def __init__(self, exec_id: str, *, taken: bool = False) -> None:
        self.exec_id = exec_id
        self.taken = taken
        self.pipe: OutputPipe | None = None
        self.receiving: asyncio.Task[None] | None = None
        self.wanted: Callable[[], bool] = lambda: False


class Handovers:
    """Those of one sandbox's commands that the guest was asked for."""

    def __init__(self) -> None:
        self._expected: dict[str, Handover] = {}

    @contextlib.contextmanager
    def expected(self, handover: Handover, wanted: Callable[[], bool]) -> Iterator[None]:
        """Within this its pipe may come, while it is ``wanted``. One that is there at the end is the caller's."""
        self._expected[handover.exec_id] = handover
        handover.wanted = wanted
        try:
            yield
        except BaseException:
            if handover.pipe is not None:
                handover.pipe.close()
            raise
        finally:
            del self._expected[handover.exec_id]
            if handover.receiving is not None:
                handover.receiving.cancel()
                handover.receiving = None

    def meet(self, connected: socket.socket, hello: Mapping[str, Any]) -> None:
        """Somebody who knows the link's key has a descriptor for us; that nobody wants it, its end tells the guest."""
        handover, offset = self._expected.get(str(hello[SHOWN])), hello.get("offset")
        if handover is None or handover.receiving is not None or not isinstance(offset, int):
            connected.close()
            return
        offset = min(max(offset, 0), MAX_OFFSET)
        handover.receiving = asyncio.create_task(_receive(connected, handover, offset))
        # Not there: a task that is cancelled before its first step runs none of its own code.
        handover.receiving.add_done_callback(lambda _: connected.close())


async def _receive(connected: socket.socket, handover: Handover, offset: int) -> None:
    try:
        connected.send(frames.encode_json(frames.HELLO, 0, _HELLO))
        async with asyncio.timeout(PATIENCE):
            await readable(connected)
        descriptor = own_pipe(_received(connected))
    except OSError:  # the timeout is one too
        return
    try:
        if handover.wanted():
            connected.send(frames.encode(frames.PONG, 0))
            handover.pipe, handover.taken = OutputPipe(descriptor, offset), True
    except OSError:
        pass  # the guest has gone
    finally:
        if handover.pipe is None:
            os.close(descriptor)


def _received(connected: socket.socket) -> int:
    """The one descriptor. Raises `OSError`."""
    _, descriptors, flags, _ = socket.recv_fds(connected, 64, 1, socket.MSG_CMSG_CLOEXEC)
    if len(descriptors) == 1 and not flags & socket.MSG_CTRUNC:
        return descriptors[0]
    for received in descriptors:
        _dispose(received)
    raise OSError("not one descriptor came")


def own_pipe(received: int) -> int:
    """A descriptor of our own for the pipe behind ``received``, which is closed. Raises `OSError`.

    Nothing is asked of what may be a file of the sandbox's own file system, which need not answer.
    """
    try:
        if not _is_pipe(received):
            raise OSError("what came is no pipe")
        descriptor = os.open(_place(received), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    finally:
        _dispose(received)
    with contextlib.suppress(OSError):  # beyond this user's share
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    return descriptor


def _dispose(received: int) -> None:
    """Closing a file may wait for its file system for ever."""
    if _is_pipe(received):
        os.close(received)
    else:
        threading.Thread(target=os.close, args=(received,), daemon=True).start()


def _is_pipe(descriptor: int) -> bool:
    """As the kernel names it. One on a disk has a path."""
    return str(_place(descriptor).readlink()).startswith("pipe:[")


def _place(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}")
