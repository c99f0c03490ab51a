"""The guest's code in this process, to be fed with whatever a host might say. No command is really started."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from yaosb_jupyter.guest import dial, frames, handover, later, processes
from yaosb_jupyter.guest.executions import Executions
from yaosb_jupyter.guest.link import Link
from yaosb_jupyter.guest.listen import Listeners
from yaosb_jupyter.guest.loop import Loop
from yaosb_jupyter.guest.service import Service
from yaosb_jupyter.guest.spawn import Spawner, StartError

HELLO = frames.encode_json(frames.HELLO, 0, {"major": frames.MAJOR})
STEPS = 20


class Pretended(subprocess.Popen[bytes]):
    """A process that is none: it writes its words and has ended."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode = None

    def __del__(self) -> None:
        """There is nothing to be waited for."""


class PretendingSpawner(Spawner):
    """Commands called ``missing`` cannot be started; all others write what their arguments say."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[int] = []

    def spawn(
        self,
        argv: list[str],
        cwd: str,
        env: dict[str, str],
        ends: Sequence[int | None],
        *,
        in_terminal: bool = False,
    ) -> subprocess.Popen[bytes]:
        if argv[0] == "missing" or not all(isinstance(value, str) for value in env.values()):
            raise StartError("missing: command not found", 127)
        pid = 2**30 + len(self.started)
        self.started.append(pid)
        for end, word in zip(ends[1:], argv, strict=False):
            assert end is not None
            os.write(end, word.encode("utf-8", "replace")[:1000])
        return Pretended(pid)


class InProcessGuest:
    """`feed` it bytes, `step` its loop, look at what it `said`. `errors` are what its loop had to swallow."""

    def __init__(self, workdir: str) -> None:
        self.errors: list[BaseException] = []
        self._undo = contextlib.ExitStack()
        self._undo.enter_context(_replaced(sys, "excepthook", lambda _, error, __: self.errors.append(error)))
        # Whatever it is told to kill, there is nobody.
        self._undo.enter_context(_replaced(processes, "scan", dict))
        self._undo.enter_context(_replaced(processes, "send_signal", lambda *_: None))
        self._undo.callback(signal.signal, signal.SIGCHLD, signal.getsignal(signal.SIGCHLD))
        self.loop = Loop()
        self._undo.callback(lambda: os.close(signal.set_wakeup_fd(-1)))
        self._undo.callback(lambda: os.close(self.loop._wakeup))
        self.spawner = PretendingSpawner()
        self._undo.callback(os.close, self.spawner._oom)
        self._undo.callback(os.close, self.spawner._null)
        self._service = Service(self.loop, self.spawner, workdir)
        executions = Executions(self.loop, self._service.start, workdir, 600)
        self.link = Link(self.loop, "", {"major": frames.MAJOR}, self._service.serve, executions.link_is_back)
        self._service.offer(executions.operations())
        self._service.offer(dial.operations(self.loop))
        self._undo.enter_context(_replaced(os, "environ", dict(os.environ)))
        listeners = Listeners(self.loop, self.link.open, reachable=True)
        self._undo.callback(_end_listening, listeners)
        self._service.offer(listeners.operations())
        self._service.offer(later.operations(self.loop, workdir))
        self._service.offer(handover.operations(self.loop, executions, f"{workdir}/nobody", {}))
        self.connect()

    @property
    def operations(self) -> list[str]:
        return self._service.features

    def connect(self) -> None:
        """As the host of another link."""
        self.host, ours = socket.socketpair()
        self._undo.callback(self.host.close)
        self.host.setblocking(False)
        self.link.take(ours)
        self._decoder = frames.Decoder()

    def feed(self, data: bytes) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            self.host.send(data)

    def step(self) -> None:
        """What the loop does without waiting."""
        for _ in range(STEPS):
            self.loop.later(0, lambda: self.loop.stop(0))
            self.loop.run()
            self.loop._exit_code = None
            for pid in list(self._service._running):
                self._service._running.pop(pid).reaped(0, _NO_USAGE)

    def said(self) -> list[frames.Frame] | None:
        """The frames since the last time; None when it has ended the link."""
        data = b""
        with contextlib.suppress(BlockingIOError, ConnectionError):
            while piece := self.host.recv(2**20):
                data += piece
            return None
        return list(self._decoder.feed(data))

    def close(self) -> None:
        self.link._path = ""
        self.link._broke()
        self.loop._selector.close()
        self._undo.close()


def _end_listening(listeners: Listeners) -> None:
    """A guest leaves this to its end."""
    for listening in listeners._listening.values():
        listening.close()
    if listeners._directory:
        shutil.rmtree(listeners._directory)


def message(kind: int, stream: int, content: dict[str, Any]) -> bytes:
    return frames.encode_json(kind, stream, content)


_NO_USAGE = __import__("resource").getrusage(__import__("resource").RUSAGE_CHILDREN)


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
