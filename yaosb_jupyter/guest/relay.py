"""The relay: a program that carries a link between its stdin and stdout and the guest, where no socket is shared.

``relay NAME``: the guest listens at the abstract socket of that name, or will in a moment. What the host writes first,
the knock, tells the guest that it is the host (see `reception`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import socket
import threading
import time

PATIENCE = 15.0
POLL = 0.01
CHUNK = 1 << 18
PIPE_SIZE = 1 << 20


def relay(name: str) -> int:
    """Until either side ends."""
    guest = _connect(b"\0" + name.encode())
    if guest is None:
        return 1
    threading.Thread(target=_outwards, args=(guest,), daemon=True).start()
    try:
        while True:
            data = os.read(0, CHUNK)
            if not data:
                return 0
            guest.sendall(data)
    except OSError:
        return 0


def _connect(address: bytes) -> socket.socket | None:
    deadline = time.monotonic() + PATIENCE
    while True:
        guest = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            guest.connect(address)
            return guest
        except OSError:
            guest.close()
        if time.monotonic() > deadline:
            return None
        time.sleep(POLL)  # it begins to listen when it has started; nothing tells of that


def _outwards(guest: socket.socket) -> None:
    try:
        if not _splice(guest):
            _copy(guest)
    except OSError:
        pass  # the other side has gone
    os._exit(0)  # the main thread waits in a read that nothing else ends


def _splice(guest: socket.socket) -> bool:
    """Without looking at the bytes, at a third of the cost; False where the system cannot, or this Python."""
    try:
        fcntl.fcntl(1, getattr(fcntl, "F_SETPIPE_SZ", 1031), PIPE_SIZE)
    except OSError:
        pass  # beyond this user's share of pipe memory
    splice = getattr(os, "splice", None)
    if splice is None:
        return False
    while True:
        select.select([guest], [], [])
        try:
            # Waiting in there would keep the pipe's reader from what is in it.
            if not splice(guest.fileno(), 1, CHUNK, flags=os.SPLICE_F_NONBLOCK):
                return True
        except BlockingIOError:
            select.select([], [1], [])
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOSYS, errno.EPERM):
                return False
            raise


def _copy(guest: socket.socket) -> None:
    buffer = memoryview(bytearray(CHUNK))
    while True:
        count = guest.recv_into(buffer)
        if not count:
            break
        written = 0
        while written < count:
            written += os.write(1, buffer[written:count])
