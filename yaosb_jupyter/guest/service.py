"""What the host can ask for: the operations of the link."""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import time

from . import frames, processes
from .command import KILL_GRACE, MARK, Command
from .link import Stream
from .logs import LogStream, Ring
from .loop import Loop
from .mainprocess import MainProcess
from .spawn import Spawner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Set, Union

    Operation = Callable[[Stream, Dict[str, Any]], None]
    """Serves a stream by its request: ends it, or gives it a handler."""

MAIN = "main"
MOST_LISTED = 4096
ROOM = frames.MAX_PAYLOAD // 2
"""Bytes of an answer for the command lines in it, together."""


class EndingError(Exception):
    """The sandbox is stopping, and no command can be started any more."""


class Service:
    """Serves streams, starts processes, and reaps what ends."""

    def __init__(self, loop: Loop, spawner: Spawner, workdir: str) -> None:
        self._loop = loop
        self._spawner = spawner
        self._workdir = workdir
        self._running: Dict[int, Union[Command, MainProcess]] = {}
        self._logs = Ring()
        self._main: Optional[Command] = None
        self._ending = False
        self._logs_owed = False
        self._operations: Dict[str, Operation] = {
            "kill": self._kill,
            "processes": lambda stream, _: _processes(self._inhabitants(), stream),
            "logs": self._stream_logs,
        }
        self.relay = 0
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
        except EndingError:
            stream.fail("NotRunningError", "the sandbox is stopping")
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, re.error) as error:
            stream.fail("InvalidOptionError", "bad request: %r" % error)
        except OSError as error:  # no descriptors left, or no memory: the host must not wait for an answer
            stream.fail("UnavailableError", str(error))

    def start(self, command: Command, argv: List[str], cwd: str, env: Dict[str, str], timeout: float) -> None:
        """Raises `StartError`, `EndingError`."""
        if self._ending:
            raise EndingError
        command.start(self._spawner, argv, cwd, env, timeout)
        self._running[command.pid] = command

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
        _terminate(self._inhabitants())
        self._wait_until_empty(then)

    def _wait_until_empty(self, then: Callable[[], None]) -> None:
        self._reap()
        if self._inhabitants():
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

    def _kill(self, stream: Stream, request: Dict[str, Any]) -> None:
        pattern = re.compile(request["pattern"])
        grace = float(request.get("grace", KILL_GRACE))
        matching = {pid for pid in self._inhabitants() if pattern.search(processes.command_line(pid))}
        self._end(matching, grace, lambda left: stream.close({"pids": sorted(matching), "left": sorted(left)}))

    def end_leftovers(self) -> None:
        """Commands of an earlier guest of this sandbox: nobody can take them up any more. Before any of its own."""
        others = set(processes.scan()) - {os.getpid()}
        self._end({pid for pid in others if processes.has_variable(pid, MARK.encode())}, KILL_GRACE, lambda _: None)

    def _end(self, matching: Set[int], grace: float, then: Callable[[Set[int]], None]) -> None:
        """SIGTERM, after ``grace`` seconds SIGKILL; ``then`` is told what is left, being another user's."""
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
            then(left())

        look()

    def _stream_logs(self, stream: Stream, request: Dict[str, Any]) -> None:
        LogStream(self._logs, stream, request, lambda: self._main is None, self._logs_sent)

    # Processes

    def _inhabitants(self) -> Set[int]:
        """Without the relay, which is ours."""
        return processes.inhabitants() - {self.relay}

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


def _processes(inhabitants: Set[int], stream: Stream) -> None:
    table = processes.scan()
    listed = sorted(inhabitants & set(table))[:MOST_LISTED]
    page = resource.getpagesize()
    hertz = os.sysconf("SC_CLK_TCK")
    share = ROOM // max(len(listed), 1)
    told = [
        {
            "pid": pid,
            "parent": table[pid].parent,
            "command": frames.cut(processes.command_line(pid)[:200], share),
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
