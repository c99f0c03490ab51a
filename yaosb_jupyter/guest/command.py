"""A running command: its pipes, its process tree, its end."""

from __future__ import annotations

import array
import fcntl
import os
import resource
import signal
import subprocess
import termios
import time
from typing import Any, Callable, Dict, List, Optional, Protocol, Set, Tuple

from . import frames, processes
from .loop import READ, WRITE, Loop
from .spawn import Spawner

CHUNK = 1 << 18
PIPE_SIZE = 1 << 18
DRAIN_GRACE = 0.2
"""How long a command that has ended waits for its output when others hold it open."""
POLL = 0.01
MARK = "YAOSB_EXEC_ID"


class Sink(Protocol):
    """Where output goes; `room` 0 makes the command wait."""

    def room(self) -> int: ...

    def send(self, kind: int, data: bytes) -> None: ...


class Nowhere:
    """The sink of a command whose stream was lost: it blocks once its pipes are full."""

    def room(self) -> int:
        return 0

    def send(self, kind: int, data: bytes) -> None: ...


class Output:
    """The reading end of stdout or stderr."""

    def __init__(self, loop: Loop, kind: int, command: Command) -> None:
        self._loop = loop
        self._kind = kind
        self._command = command
        self._left: Optional[int] = None
        self.fd, self.far_end = os.pipe()
        os.set_blocking(self.fd, False)
        try:
            fcntl.fcntl(self.fd, getattr(fcntl, "F_SETPIPE_SZ", 1031), PIPE_SIZE)
        except OSError:
            pass  # beyond this user's share of pipe memory; smaller ones do
        self.ended = False

    def resume(self) -> None:
        if not self.ended:
            self._loop.watch(self.fd, READ, self._readable)

    def leave_after_rest(self) -> None:
        """Whoever else holds the pipe is not waited for: what it holds now is the last."""
        if not self.ended:
            held = array.array("i", [0])
            fcntl.ioctl(self.fd, termios.FIONREAD, held)
            self._left = held[0]
            if self._left == 0:
                self._end()

    def _readable(self) -> None:
        room = min(self._command.sink.room(), CHUNK, CHUNK if self._left is None else self._left)
        if room <= 0:
            self._loop.unwatch(self.fd)
            return
        try:
            data = os.read(self.fd, room)
        except BlockingIOError:
            return
        if data:
            self._command.sink.send(self._kind, data)
            if self._left is not None:
                self._left -= len(data)
        if not data or self._left == 0:
            self._end()

    def _end(self) -> None:
        self.close()
        self._command.output_ended()

    def close(self) -> None:
        if not self.ended:
            self.ended = True
            self._loop.unwatch(self.fd)
            os.close(self.fd)


class Input:
    """The writing end of stdin. ``took`` is told what the command has read, or will never read."""

    def __init__(self, loop: Loop, took: Callable[[int], None]) -> None:
        self._loop = loop
        self._took = took
        self._waiting: List[memoryview] = []
        self._eof = False
        self._closed = False
        self.far_end, self.fd = os.pipe()
        os.set_blocking(self.fd, False)

    def write(self, data: bytes) -> None:
        if self._closed:
            self._took(len(data))
            return
        self._waiting.append(memoryview(data))
        self._flush()

    def finish(self) -> None:
        self._eof = True
        if not self._waiting:
            self.close()

    def _flush(self) -> None:
        try:
            while self._waiting:
                written = os.write(self.fd, self._waiting[0])
                self._took(written)
                self._waiting[0] = self._waiting[0][written:]
                if not self._waiting[0]:
                    del self._waiting[0]
        except BlockingIOError:
            self._loop.watch(self.fd, WRITE, self._flush)
            return
        except OSError:  # nobody reads it any more
            self.close()
            return
        self._loop.unwatch(self.fd)
        if self._eof:
            self.close()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._loop.unwatch(self.fd)
            os.close(self.fd)
            self._took(sum(len(part) for part in self._waiting))
            self._waiting.clear()


class Command:
    """One command from its start to its result, which ``done`` is given once the output was passed on."""

    def __init__(
        self,
        loop: Loop,
        exec_id: str,
        sink: Sink,
        done: Callable[[Dict[str, Any]], None],
        took: Optional[Callable[[int], None]] = None,
    ) -> None:
        self._loop = loop
        self.exec_id = exec_id
        self.sink = sink
        self._done = done
        self.outputs = (Output(loop, frames.DATA, self), Output(loop, frames.DATA_ERR, self))
        self.input = None if took is None else Input(loop, took)
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._began = time.monotonic()
        self._ended: Optional[Tuple[int, resource.struct_rusage, float]] = None
        self._kill_at: Optional[float] = None
        self._timed_out = False
        self._finished = False

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    def start(self, spawner: Spawner, argv: List[str], cwd: str, env: Dict[str, str], timeout: float) -> None:
        """``timeout`` seconds, 0 for none. Raises `spawn.StartError`, after which the command is of no use."""
        far_ends = [output.far_end for output in self.outputs]
        stdin = self.input.far_end if self.input is not None else None
        try:
            self._process = spawner.spawn(argv, cwd, dict(env, **{MARK: self.exec_id}), stdin, *far_ends)
        except BaseException:
            self._close()
            raise
        finally:
            for fd in far_ends if stdin is None else [*far_ends, stdin]:
                os.close(fd)
        self.resume()
        if timeout:
            self._loop.later(timeout, self._time_out)

    def resume(self) -> None:
        """The sink may have room again."""
        for output in self.outputs:
            output.resume()

    # The end of the process

    def reaped(self, status: int, usage: resource.struct_rusage) -> None:
        assert self._process is not None
        self._ended = (status, usage, time.monotonic() - self._began)
        self._process.returncode = status  # reaped here, so that subprocess must not wait for it
        if self.input is not None:
            self.input.close()
        self._loop.later(DRAIN_GRACE, self._leave_outputs)
        self._finish_if_over()

    def output_ended(self) -> None:
        self._finish_if_over()

    def _leave_outputs(self) -> None:
        for output in self.outputs:
            output.leave_after_rest()

    def _finish_if_over(self) -> None:
        over = self._ended is not None and all(output.ended for output in self.outputs)
        if over and not self._finished and (self._kill_at is None or not self.members()):
            self._finished = True
            self._close()
            self._done(self._result())

    def _result(self) -> Dict[str, Any]:
        assert self._ended is not None
        status, usage, duration = self._ended
        signum = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        return {
            "exit_code": os.WEXITSTATUS(status) if signum is None else 128 + signum,
            "signal": signum,
            "duration": duration,
            "timed_out": self._timed_out,
            "peak_memory": usage.ru_maxrss * 1024,
            "cpu_time": usage.ru_utime + usage.ru_stime,
        }

    def _close(self) -> None:
        for output in self.outputs:
            output.close()
        if self.input is not None:
            self.input.close()

    # The tree

    def members(self) -> Set[int]:
        """The living processes of this command, those that left its session and lost their parents too.

        They are known by descent, by session, and by the mark in the environment they were started with.
        """
        table = processes.scan()
        found = set()
        if self._ended is None:
            found = processes.descendants(self.pid, table) | {self.pid}
        # Once reaped, the number may be another's.
        if self._ended is None or self.pid not in table:
            found |= {process.pid for process in table.values() if process.session == self.pid}
        mark = ("%s=%s" % (MARK, self.exec_id)).encode()
        unknown = processes.alive(set(table) - found - {os.getpid()}, table)
        found |= {pid for pid in unknown if processes.has_variable(pid, mark)}
        return processes.alive(found, table)

    def signal(self, signum: int) -> None:
        if not self._finished:
            processes.send_signal(self.members(), signum)

    def terminate(self, grace: float) -> None:
        """SIGTERM to the tree, after ``grace`` seconds SIGKILL; the result follows when it is gone."""
        if self._finished:
            return
        kill_at = time.monotonic() + grace
        if self._kill_at is not None:
            self._kill_at = min(self._kill_at, kill_at)
            return
        self._kill_at = kill_at
        members = self.members()
        processes.send_signal(members, signal.SIGTERM)
        processes.send_signal(members, signal.SIGCONT)
        self._see_to_end()

    def _see_to_end(self) -> None:
        assert self._kill_at is not None
        if time.monotonic() >= self._kill_at:
            processes.kill_all(self.members)
        self._finish_if_over()
        if not self._finished:
            self._loop.later(POLL, self._see_to_end)

    def _time_out(self) -> None:
        if not self._finished and self._ended is None:
            self._timed_out = True
            self.terminate(KILL_GRACE)


KILL_GRACE = 2.0
