"""A command of a memory environment: a process of this host, read through its pipes."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import subprocess
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.errors import CommandNotFoundError, SandboxLostError
from yaosb_jupyter.tai.runtimes.base import ExecStream
from yaosb_jupyter.tai.runtimes.memory.processes import find, kill_all, send_all, terminate_all
from yaosb_jupyter.types import ExitStatus

_PIECE = 2**16
_DRAIN_SECONDS = 0.2
"""How long a daemon that kept the pipes open is listened to after the command's end."""


class Command(ExecStream):
    """A started command. Nothing is buffered here: what is not received stays in the pipe.

    ``mark`` finds its tree; ``lost`` tells why its environment is gone, or None.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], *, mark: bytes, timeout: float | None, lost: Callable[[], str | None]
    ) -> None:
        self._process = process
        self._mark = mark
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._duration = 0.0
        self._wake = asyncio.Event()
        self._exited = asyncio.Event()
        self._timed_out = False
        self._killing: asyncio.Task[None] | None = None
        self._unread: dict[ExecChannel, int] = {}
        self._outputs: dict[ExecChannel, IO[bytes]] = {}
        assert process.stdout is not None
        assert process.stderr is not None
        self._outputs = {ExecChannel.STDOUT: process.stdout, ExecChannel.STDERR: process.stderr}
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
        self._pidfd = os.pidfd_open(process.pid)
        self._loop.add_reader(self._pidfd, self._on_exit)
        self._timer = self._loop.call_later(timeout, self._on_timeout) if timeout else None

    async def receive(self) -> tuple[ExecChannel, bytes] | None:
        await asyncio.sleep(0)  # the loop's turn: a flood of output always has a piece ready
        while True:
            if piece := self._read():
                return piece
            if self._drained():
                self._close_pipes()
                if reason := self._lost():
                    raise SandboxLostError(reason)
                return None
            await self._readable()

    async def send(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and self._process.stdin is not None and not self._process.stdin.closed:
            if self._exited.is_set():
                return
            try:
                rest = rest[os.write(self._process.stdin.fileno(), rest) :]
            except BlockingIOError:
                await self._writable(self._process.stdin.fileno())
            except BrokenPipeError:
                return

    async def close_stdin(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def wait(self) -> ExitStatus:
        while await self.receive():
            pass
        await self._exited.wait()
        code = self._process.returncode
        return ExitStatus(
            exit_code=128 - code if code < 0 else code,
            signal=-code if code < 0 else None,
            duration=self._duration,
            timed_out=self._timed_out,
        )

    async def signal(self, signum: int) -> None:
        if not self._exited.is_set():
            await asyncio.to_thread(lambda: send_all(find(self._mark), signum))

    async def cancel(self, grace: float = 2.0) -> None:
        await terminate_all(self._mark, grace)
        await self._exited.wait()
        self._close_pipes()

    async def aclose(self) -> None:
        if not self._exited.is_set():
            await self.cancel()
        self._close_pipes()

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._process.wait()
        self._duration = self._loop.time() - self._started
        if self._timer is not None:
            self._timer.cancel()
        self._unread = {channel: _waiting(pipe) for channel, pipe in self._outputs.items()}
        self._exited.set()
        self._wake.set()

    def _on_timeout(self) -> None:
        self._timed_out = True
        self._killing = self._loop.create_task(asyncio.to_thread(kill_all, self._mark))

    def _read(self) -> tuple[ExecChannel, bytes] | None:
        for channel, pipe in list(self._outputs.items()):
            self._outputs[channel] = self._outputs.pop(channel)  # next time the other one is asked first
            try:
                data = os.read(pipe.fileno(), _PIECE)
            except BlockingIOError:
                continue
            if data:
                if self._exited.is_set():
                    self._unread[channel] -= len(data)
                return channel, data
            pipe.close()
            del self._outputs[channel]
        return None

    def _drained(self) -> bool:
        """The command has ended and its last bytes were taken; what a daemon of its writes later is not waited for."""
        if not self._exited.is_set():
            return False
        taken = all(self._unread[channel] <= 0 for channel in self._outputs)
        return not self._outputs or (taken and self._drain_left() <= 0)

    def _drain_left(self) -> float:
        return self._started + self._duration + _DRAIN_SECONDS - self._loop.time()

    async def _readable(self) -> None:
        self._wake.clear()
        descriptors = [pipe.fileno() for pipe in self._outputs.values()]
        for descriptor in descriptors:
            self._loop.add_reader(descriptor, self._wake.set)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(self._drain_left(), 0.0) if self._exited.is_set() else None):
                    await self._wake.wait()
        finally:
            for descriptor in descriptors:
                self._loop.remove_reader(descriptor)

    async def _writable(self, descriptor: int) -> None:
        writable = asyncio.Event()
        self._loop.add_writer(descriptor, writable.set)
        waits = [asyncio.ensure_future(writable.wait()), asyncio.ensure_future(self._exited.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            self._loop.remove_writer(descriptor)

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, *self._outputs.values()):
            if pipe is not None:
                pipe.close()
        self._outputs.clear()


class NotStarted(ExecStream):
    """A command that could not be started."""

    def __init__(self, error: CommandNotFoundError) -> None:
        self._error = error

    async def receive(self) -> None:
        return None

    async def send(self, data: bytes) -> None:
        pass

    async def close_stdin(self) -> None:
        pass

    async def wait(self) -> ExitStatus:
        raise self._error

    async def signal(self, signum: int) -> None:
        pass

    async def cancel(self, grace: float = 2.0) -> None:
        pass

    async def aclose(self) -> None:
        pass


def _waiting(pipe: IO[bytes]) -> int:
    """The bytes that wait in a pipe."""
    (count,) = struct.unpack("i", fcntl.ioctl(pipe.fileno(), termios.FIONREAD, b"\0" * 4))
    return int(count)
