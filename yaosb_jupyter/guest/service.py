"""What the host can ask for: the operations of the link."""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import time
from collections import OrderedDict
from typing import Any, Callable, Dict, List, Optional, Set, Union

from . import processes
from .command import Command, Nowhere
from .link import Handler, Stream
from .logs import LogStream, Ring
from .loop import Loop
from .mainprocess import MainProcess
from .spawn import Spawner, StartError

CANCEL_GRACE = 2.0
REMEMBERED = 32
MAIN = "main"
MOST_LISTED = 4096

Operation = Callable[[Stream, Dict[str, Any]], None]
"""Serves a stream by its request: ends it, or gives it a handler."""


class ExecStream(Handler):
    """The stream of one command, while the link that opened it lasts."""

    def __init__(self, loop: Loop, stream: Stream, patience: float) -> None:
        self._loop = loop
        self._patience = patience
        self.stream = stream
        self.command: Optional[Command] = None

    def data(self, payload: bytes) -> None:
        if self.command is not None and self.command.input is not None:
            self.command.input.write(payload)
        else:
            self.stream.took(len(payload))

    def eof(self) -> None:
        if self.command is not None and self.command.input is not None:
            self.command.input.finish()

    def message(self, message: Dict[str, Any]) -> None:
        if self.command is None:
            return
        if isinstance(message.get("signal"), int):
            self.command.signal(message["signal"])
        elif isinstance(message.get("cancel"), (int, float)):
            self.command.terminate(message["cancel"])

    def cancel(self) -> None:
        if self.command is not None:
            self.command.terminate(CANCEL_GRACE)

    def writable(self) -> None:
        if self.command is not None:
            self.command.resume()

    def lost(self) -> None:
        """The command goes on for a while: the host may come back for it."""
        command = self.command
        if command is not None:
            command.sink = Nowhere()
            self._loop.later(self._patience, lambda: command.terminate(CANCEL_GRACE))


class Service:
    """Serves streams, starts the main process, and reaps what ends.

    ``patience``: how many seconds a command goes on without a link.
    """

    def __init__(self, loop: Loop, spawner: Spawner, workdir: str, patience: float) -> None:
        self._loop = loop
        self._spawner = spawner
        self._workdir = workdir
        self._patience = patience
        self._running: Dict[int, Union[Command, MainProcess]] = {}
        self._known: OrderedDict[str, Optional[Dict[str, Any]]] = OrderedDict()
        self._logs = Ring()
        self._main: Optional[Command] = None
        self._ending = False
        self._logs_owed = False
        self._operations: Dict[str, Operation] = {
            "exec": self._exec,
            "kill": self._kill,
            "processes": _processes,
            "logs": self._stream_logs,
        }
        loop.on_signal(signal.SIGCHLD, self._reap)

    def offer(self, operations: Dict[str, Operation]) -> None:
        """What other modules serve."""
        self._operations.update(operations)

    @property
    def features(self) -> List[str]:
        """For the HELLO: the names of all operations."""
        return sorted(self._operations)

    def serve(self, stream: Stream, request: Dict[str, Any]) -> None:
        try:
            self._operations.get(str(request.get("op")), _unknown)(stream, request)
        except (KeyError, TypeError, ValueError, AttributeError, re.error) as error:
            stream.fail("InvalidOptionError", "bad request: %r" % error)

    def run_main(
        self, argv: list[str], env: Dict[str, str], ended: Callable[[int], None], *, own_outputs: bool
    ) -> None:
        """Starts the main process; ``ended`` is told its exit code. Raises `StartError`.

        ``own_outputs``: it writes to the guest's, and the log is kept by whoever reads these.
        """
        if own_outputs:
            main = MainProcess(lambda result: ended(result["exit_code"]))
            main.start(self._spawner, argv, self._workdir, dict(os.environ, **env))
            self._running[main.pid] = main
            return
        command = Command(self._loop, MAIN, self._logs, lambda result: self._main_ended(result, ended))
        command.start(self._spawner, argv, self._workdir, dict(os.environ, **env), 0)
        self._main = self._running[command.pid] = command
        self._logs_owed = True

    def end(self, then: Callable[[], None]) -> None:
        """SIGTERM to every process of the sandbox, and ``then`` when none is left."""
        if self._ending:
            return
        self._ending = True
        _terminate(processes.inhabitants())
        self._wait_until_empty(then)

    def _wait_until_empty(self, then: Callable[[], None]) -> None:
        self._reap()
        if processes.inhabitants():
            self._loop.later(0.01, lambda: self._wait_until_empty(then))
        else:
            then()

    def _main_ended(self, result: Dict[str, Any], ended: Callable[[int], None]) -> None:
        self._main = None
        self._logs.wake()
        ended(result["exit_code"])

    @property
    def logs_owed(self) -> bool:
        """Whether the host has yet to take what the main process wrote last."""
        return self._logs_owed

    def _logs_sent(self) -> None:
        self._logs_owed = False

    # Operations

    def _exec(self, stream: Stream, request: Dict[str, Any]) -> None:
        exec_id = str(request["exec_id"])
        if exec_id in self._known:
            self._answer_again(stream, exec_id)
            return
        if self._ending:
            stream.fail("NotRunningError", "the sandbox is stopping")
            return
        argv = [os.fsencode(part).decode("utf-8", "surrogateescape") for part in request["argv"]]
        env = dict(os.environ, **request.get("env", {}))
        cwd = os.path.join(self._workdir, request.get("cwd", ""))
        handler = ExecStream(self._loop, stream, self._patience)
        command = Command(
            self._loop,
            exec_id,
            stream,
            lambda result: self._exec_ended(handler, exec_id, result),
            stream.took if request.get("stdin") else None,
        )
        self._remember(exec_id, None)
        try:
            command.start(self._spawner, argv, cwd, env, float(request.get("timeout") or 0))
        except StartError as error:
            del self._known[exec_id]
            stream.fail("CommandNotFoundError", str(error), exit_code=error.exit_code)
            return
        handler.command = command
        stream.handler = handler
        self._running[command.pid] = command
        stream.send_message({"started": command.pid})

    def _answer_again(self, stream: Stream, exec_id: str) -> None:
        """A retry never runs twice. Its output went to the first stream."""
        result = self._known[exec_id]
        if result is None:
            stream.fail("AlreadyExistsError", "this command runs already")
        else:
            stream.close(result)

    def _exec_ended(self, handler: ExecStream, exec_id: str, result: Dict[str, Any]) -> None:
        self._remember(exec_id, result)
        handler.stream.close(result)

    def _remember(self, exec_id: str, result: Optional[Dict[str, Any]]) -> None:
        self._known[exec_id] = result
        self._known.move_to_end(exec_id)
        ended = [known for known, kept in self._known.items() if kept is not None]
        for old in ended[:-REMEMBERED]:
            del self._known[old]

    def _kill(self, stream: Stream, request: Dict[str, Any]) -> None:
        pattern = re.compile(request["pattern"])
        grace = float(request.get("grace", CANCEL_GRACE))
        matching = {pid for pid in processes.inhabitants() if pattern.search(processes.command_line(pid))}
        _terminate(matching)
        table = processes.scan()
        started = {pid: table[pid].started for pid in matching if pid in table}
        deadline = time.monotonic() + grace

        def left() -> Set[int]:
            now = processes.scan()
            return {pid for pid in processes.alive(started, now) if now[pid].started == started[pid]}

        def look() -> None:
            if left() and time.monotonic() < deadline:
                self._loop.later(0.01, look)
                return
            processes.kill_all(left)
            stream.close({"pids": sorted(matching)})

        look()

    def _stream_logs(self, stream: Stream, request: Dict[str, Any]) -> None:
        LogStream(self._logs, stream, request, lambda: self._main is None, self._logs_sent)

    # Processes

    def _reap(self) -> None:
        """Our commands, and as pid 1 or subreaper whatever lost its parent."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            command = self._running.pop(pid, None)
            if command is not None:
                command.reaped(status, usage)


def _unknown(stream: Stream, request: Dict[str, Any]) -> None:
    stream.fail("ProtocolError", "operation %r is not known to this guest" % request.get("op"))


def _processes(stream: Stream, _: Dict[str, Any]) -> None:
    table = processes.scan()
    listed = sorted(processes.inhabitants() & set(table))[:MOST_LISTED]
    page = resource.getpagesize()
    hertz = os.sysconf("SC_CLK_TCK")
    told = [
        {
            "pid": pid,
            "parent": table[pid].parent,
            "command": processes.command_line(pid)[:200],
            "memory": table[pid].pages * page,
            "cpu_time": table[pid].ticks / hertz,
        }
        for pid in listed
    ]
    stream.close({"processes": told})


def _terminate(pids: Set[int]) -> None:
    processes.send_signal(pids, signal.SIGTERM)
    processes.send_signal(pids, signal.SIGCONT)


def warn(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
