"""Commands by engine exec, on a connection of our own.

A wrapper in the container runs the command and reports its end on both outputs, behind the last byte of each (see
`scripts.WRAPPER`). So nothing is lost behind a slow reader, a daemon that keeps the outputs open delays nothing, and
stdin ends by a message, which works on transports that cannot be half-closed, as TLS in Python.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal as signals
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.errors import (
    CommandNotFoundError,
    NotFoundError,
    NotRunningError,
    SandboxError,
    SandboxLostError,
    UnavailableError,
)
from yaosb_jupyter.link.exec import no_more_processes
from yaosb_jupyter.options import ExecOptions
from yaosb_jupyter.tai.runtimes.base import ExecStream
from yaosb_jupyter.tai.runtimes.docker.demux import Demultiplexer, Report, ReportFinder
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.failures import start_error
from yaosb_jupyter.tai.runtimes.docker.http import Connection
from yaosb_jupyter.tai.runtimes.docker.processes import Processes, Tree
from yaosb_jupyter.tai.runtimes.docker.scripts import MARKER, WRAPPER, WRAPPER_NAME
from yaosb_jupyter.types import ExitStatus

_log = logging.getLogger(__name__)

_TIMEOUT_GRACE = 0.5
_END_ATTEMPTS = 6
_END_SECONDS = 1.0
_LOST_SECONDS = 0.3
_MAX_PENDING = 2**24
_PIECE = 2**20
_MAX_ARGUMENT = 2**17


async def start_exec(
    engine: Engine, processes: Processes, runtime_id: str, options: ExecOptions, *, cwd: str, env: dict[str, str]
) -> DockerExecStream:
    """Starts a command. Cancelled meanwhile, it is ended. Raises `CommandNotFoundError` for too long an argument."""
    if any(len(os.fsencode(part)) >= _MAX_ARGUMENT for part in options.argv):  # the engine would not say so
        raise CommandNotFoundError(
            f"{options.argv[0]}: argument list too long",
            exit_code=126,
            sandbox=runtime_id,
            hint="pass what is long by stdin or in a file: one argument may have 128 KiB",
        )
    nonce = "\x1e" + secrets.token_hex(16)
    tree = Tree(
        runtime_id=runtime_id,
        command=options.argv[0],
        user=options.user,
        marker=secrets.token_hex(16),
        nonce=nonce,
    )
    argv = ["sh", "-c", WRAPPER, WRAPPER_NAME, nonce, "in" if options.stdin else "no", *options.argv]
    environment = {**env, MARKER: tree.marker}
    made = await engine.call(
        lambda client: client.exec_create(
            runtime_id, argv, stdin=True, user=options.user, environment=environment, workdir=cwd or None
        ),
        sandbox=runtime_id,
    )
    try:
        connection = await engine.upgrade(
            engine.target("exec", made["Id"], "start"), {"Detach": False, "Tty": False}, sandbox=runtime_id
        )
    except asyncio.CancelledError:
        engine.in_background(end_unseen(processes, tree))
        raise
    return DockerExecStream(engine, processes, tree, made["Id"], connection, options)


async def end_unseen(processes: Processes, tree: Tree) -> None:
    """Ends a command that may just be starting."""
    for _ in range(_END_ATTEMPTS):
        with suppress(SandboxError):
            if await processes.end_tree(tree, signals.SIGKILL, 0):
                return
        await asyncio.sleep(0.1)  # the engine has not told us of its start, and never will


class DockerExecStream(ExecStream):
    """One command; see `ExecStream`. A signal's exit code is told as the shell does, 128 + number."""

    ending_signal: ClassVar[signals.Signals] = signals.SIGTERM

    def __init__(
        self,
        engine: Engine,
        processes: Processes,
        tree: Tree,
        exec_id: str,
        connection: Connection,
        options: ExecOptions,
    ) -> None:
        self._engine = engine
        self._processes = processes
        self._tree = tree
        self._exec_id = exec_id
        self._connection = connection
        self._stdin_open = options.stdin or options.tty is not None
        self._sending = asyncio.Lock()
        self._reading = asyncio.Lock()
        self._demultiplexer = Demultiplexer()
        self._finders = {channel: ReportFinder(tree.nonce.encode()) for channel in ExecChannel}
        self._reports: dict[ExecChannel, Report] = {}
        self._greeting = f"{tree.nonce}>".encode()
        self._preface: bytes | None = b""
        self._pending: deque[tuple[ExecChannel, bytes]] = deque()
        self._pending_size = 0
        self._status: ExitStatus | None = None
        self._error: SandboxError | None = None
        self._started = time.monotonic()
        self._timed_out = False
        self._ending: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        if options.timeout:
            self._timer = asyncio.get_running_loop().call_later(options.timeout, self._expire)

    async def receive(self) -> tuple[ExecChannel, bytes] | None:
        async with self._reading:
            while not self._pending and not self._is_over:
                await self._advance()
        if self._pending:
            channel, data = self._pending.popleft()
            self._pending_size -= len(data)
            return channel, data
        if isinstance(self._error, SandboxLostError):
            raise self._error
        return None

    async def send(self, data: bytes) -> None:
        async with self._sending:
            for start in range(0, len(data), _PIECE):
                piece = data[start : start + _PIECE]
                await self._send_frame(b"%d\n%b" % (len(piece), piece))

    async def close_stdin(self) -> None:
        async with self._sending:
            await self._send_frame(b"0\n")
            self._stdin_open = False

    async def _send_frame(self, frame: bytes) -> None:
        if self._is_over or not self._stdin_open:
            return
        try:
            await self._connection.write(frame)
        except ConnectionError:
            self._stdin_open = False  # it ended: the reader tells how

    async def wait(self) -> ExitStatus:
        while await self.receive() is not None:
            pass
        if self._status is None:
            assert self._error is not None
            raise self._error
        return self._status

    async def signal(self, signum: int) -> None:
        if not self._is_over:
            await self._processes.signal_tree(self._tree, signum)

    async def cancel(self, grace: float = 2.0) -> None:
        if self._is_over:
            with suppress(SandboxError):  # what is left of its tree
                await self._processes.end_tree(self._tree, signals.SIGTERM, grace)
            return
        if self._ending is None:
            self._ending = self._engine.in_background(self._end(grace))
        await asyncio.shield(self._ending)

    async def aclose(self) -> None:
        try:
            if not self._is_over:
                await self.cancel()
        finally:
            await self._hang_up()

    @property
    def _is_over(self) -> bool:
        return self._status is not None or self._error is not None

    async def _advance(self) -> None:
        """Takes what comes next. Safe to cancel: what was read is kept."""
        data = await self._connection.read()
        if not data:
            await self._learn_end()
            return
        for channel, piece in self._demultiplexer.feed(data):
            if channel in self._reports:
                continue  # from a daemon that the command left behind
            if channel is ExecChannel.STDOUT and self._preface is not None:
                rest, report = self._finders[channel].feed(self._greeted(piece))
            else:
                rest, report = self._finders[channel].feed(piece)
            self._keep(channel, rest)
            if report is not None:
                self._reports[channel] = report
        if len(self._reports) == len(ExecChannel):
            await self._finish(self._reports[ExecChannel.STDOUT])

    def _greeted(self, piece: bytes) -> bytes:
        """What follows the wrapper's greeting; until that has come, all is held for the engine's own message."""
        assert self._preface is not None
        self._preface += piece
        if not self._preface.startswith(self._greeting):
            return b""
        rest = self._preface.removeprefix(self._greeting)
        self._preface = None
        return rest

    def _keep(self, channel: ExecChannel, data: bytes) -> None:
        if data:
            self._pending.append((channel, data))
            self._pending_size += len(data)

    async def _finish(self, report: Report) -> None:
        failed = next((each for each in self._reports.values() if each.failed), None)
        if failed is not None:
            self._error = self._not_found(failed.code)
        else:
            self._status = self._exit_status(report.code)
        await self._hang_up()

    def _not_found(self, code: int) -> CommandNotFoundError:
        what, hint = "was not found", "is it installed in the sandbox, and on its PATH?"
        if code == 126:
            what, hint = "cannot be run", "it is there: see its rights (chmod +x) and its first line"
        return CommandNotFoundError(
            f"the command {self._tree.command!r} {what}", exit_code=code, sandbox=self._tree.runtime_id, hint=hint
        )

    def _exit_status(self, code: int) -> ExitStatus:
        return ExitStatus(
            exit_code=code,
            signal=code - 128 if 128 < code <= 192 else None,
            duration=time.monotonic() - self._started,
            timed_out=self._timed_out,
        )

    async def _learn_end(self) -> None:
        """The stream ended without a report: it could not start, was killed with its wrapper, or all is gone."""
        if self._is_over:
            return  # it was ended here
        for channel, finder in self._finders.items():
            if channel not in self._reports:
                self._keep(channel, finder.rest())
        lost = SandboxLostError(
            "the sandbox was stopped or vanished while the command ran", sandbox=self._tree.runtime_id
        )
        try:
            state = await self._engine.call(lambda client: client.exec_inspect(self._exec_id))
        except (NotFoundError, UnavailableError) as error:
            lost.__cause__ = error
            await self._fail(lost)
            return
        code = 137 if state["ExitCode"] is None else int(state["ExitCode"])
        if not state.get("Pid") and code in (126, 127):
            words = self._words_of_engine().decode(errors="replace").strip()
            failure = start_error(words, self._tree.runtime_id)
            # What the engine says of a start into a container that ends may be anything.
            ended = type(failure) is UnavailableError and await self._container_ended()
            await self._fail(lost if ended else failure)
        elif await self._container_ended():
            await self._fail(lost)
        else:
            await self._end_without_report(code)

    async def _end_without_report(self, code: int) -> None:
        if code <= 128:  # the wrapper's own end, which it comes to only where it cannot fork
            await self._fail(no_more_processes("the command could not be started inside", self._tree.runtime_id))
        else:
            await self._end_with(code)

    async def _end_with(self, code: int) -> None:
        self._status = self._exit_status(code)
        await self._hang_up()

    def _words_of_engine(self) -> bytes:
        return self._preface or b""

    async def _container_ended(self) -> bool:
        """Whether the container ended too; the engine may tell of the command a moment before the container."""
        deadline = time.monotonic() + _LOST_SECONDS
        while True:
            try:
                found = await self._engine.call(lambda client: client.inspect_container(self._tree.runtime_id))
            except (NotFoundError, UnavailableError):
                return True
            if not found["State"]["Running"]:
                return True
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.05)

    async def _fail(self, error: SandboxError) -> None:
        self._error = error
        await self._hang_up()

    async def _hang_up(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._connection.aclose()

    def _expire(self) -> None:
        if self._ending is None and not self._is_over:
            self._timed_out = True
            self._ending = self._engine.in_background(self._end(_TIMEOUT_GRACE, expired=True))

    async def _end(self, grace: float, *, expired: bool = False) -> None:
        """Ends the tree and sees that the stream ends; a tree that resists to the last costs its container."""
        ended = resists = False
        for attempt in range(_END_ATTEMPTS):
            try:
                found = await self._processes.end_tree(self._tree, self.ending_signal, grace if not attempt else 0)
            except SandboxError as error:
                if await self._processes.is_paused(self._tree.runtime_id):
                    await self._leave_paused(expired=expired)
                    return
                _log.warning("a command in %s could not be ended yet: %s", self._tree.runtime_id, error)
                resists = True
            else:
                resists = found > 0
                ended = ended or resists
                if expired:
                    self._tell_timed_out(ended)
            if await self._read_to_end():
                return
        if not resists:
            return  # only its output is late
        _log.error("a command in %s resists: killing the container", self._tree.runtime_id)
        with suppress(SandboxError):
            await self._engine.call(lambda client: client.kill(self._tree.runtime_id))
        await self._read_to_end()

    async def _leave_paused(self, *, expired: bool) -> None:
        """It is killed, as it will find when it goes on; who waits for more than its timeout is told."""
        self._ending = None
        if not expired and not self._is_over:
            message, hint = "it is paused: the command is ended when it goes on", "start it to go on"
            await self._fail(NotRunningError(message, sandbox=self._tree.runtime_id, hint=hint))

    def _tell_timed_out(self, ended: bool) -> None:
        """Nothing was there to be ended: the command had run to its end, only its output had not been taken."""
        self._timed_out = ended
        if self._status is not None:
            self._status = replace(self._status, timed_out=ended)

    async def _read_to_end(self) -> bool:
        """Reads what is left, if no one else does, for a second at most; whether the stream is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS), self._reading:
                while not self._is_over and self._pending_size < _MAX_PENDING:
                    await self._advance()
        return self._is_over
