"""A running command: its pipes, its process tree, its end."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time

from . import frames, memory, processes, terminal
from .loop import Loop, Timer
from .pipes import Input, Output, output_pipe
from .spawn import Spawner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

    from .pipes import Sink

DRAIN_GRACE = 0.2
"""How long a command that has ended waits for its output when others hold it open."""
KILL_GRACE = 2.0
POLL = 0.01
MARK = "YAOSB_EXEC_ID"
KILLED = (signal.SIGKILL, (128 + signal.SIGKILL) << 8)
"""What is waited for of one that was killed, and of a shell whose last command was."""


class Command:
    """One command from its start to its result, which ``done`` is given once the output was passed on.

    ``took``: it has a stdin, and this is told what it read of it. ``size``: it has a terminal of so many columns and
    rows for all three. Raises `OSError` where there are no descriptors left, or no terminals.
    """

    def __init__(
        self,
        loop: Loop,
        exec_id: str,
        sink: Sink,
        done: Callable[[Dict[str, Any]], None],
        took: Optional[Callable[[int], None]] = None,
        size: Optional[Tuple[int, int]] = None,
    ) -> None:
        self._loop = loop
        self.exec_id = exec_id
        self._sink = sink
        self._done = done
        self._outputs: List[Output] = []
        self.input: Optional[Input] = None
        self._terminal: Optional[int] = None
        self._far_ends: List[Optional[int]] = [None]
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._began = time.monotonic()
        self._ended: Optional[Tuple[int, resource.struct_rusage, float]] = None
        self._timer: Optional[Timer] = None
        self._kill_at: Optional[float] = None
        self._timed_out = False
        self._kills_before = memory.kills()
        self._out_of_memory = False
        self._finished = False
        try:
            self._open(took, size)
        except BaseException:
            self._close()
            self._close_far_ends()
            raise

    def _open(self, took: Optional[Callable[[int], None]], size: Optional[Tuple[int, int]]) -> None:
        if size is not None:
            ours, theirs = terminal.open_terminal(*size)
            self._terminal = ours
            self._far_ends = [theirs, theirs, theirs]
            self._outputs.append(self._output(frames.DATA, ours))
            self.input = Input(self._loop, os.dup(ours), took or _nobody, terminal.END_OF_FILE)
            return
        if took is not None:
            self._far_ends[0], ours = os.pipe()
            self.input = Input(self._loop, ours, took)
        for kind in (frames.DATA, frames.DATA_ERR):
            ours, theirs = output_pipe()
            self._far_ends.append(theirs)
            self._outputs.append(self._output(kind, ours))

    def _output(self, kind: int, fd: int) -> Output:
        return Output(self._loop, kind, fd, self._sink, self._finish_if_over)

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    def start(self, spawner: Spawner, argv: List[str], cwd: str, env: Dict[str, str], timeout: float) -> None:
        """``timeout`` seconds, 0 for none. Raises `spawn.StartError`, after which the command is of no use."""
        env = dict(env, **{MARK: self.exec_id})
        if self._terminal is not None:
            env.setdefault("TERM", terminal.NAME)
        try:
            self._process = spawner.spawn(argv, cwd, env, self._far_ends, in_terminal=self._terminal is not None)
        except BaseException:
            self._close()
            raise
        finally:
            self._close_far_ends()
        self.resume()
        if timeout:
            self._timer = self._loop.later(timeout, self._time_out)

    def resume(self) -> None:
        """The sink may have room again."""
        for output in self._outputs:
            output.resume()

    # Its output in other hands

    def lend_output(self) -> Optional[int]:
        """The pipe of its stdout, to be read by somebody else; None where it has none, or not any more."""
        return None if self._terminal is not None else self._outputs[0].lend()

    def output_lent(self, taken: bool) -> None:
        """Whether it has been taken over; else it is read here again."""
        self._outputs[0].lent(taken)

    def take_back_output(self) -> bool:
        """Whether somebody else has read it until here."""
        return self._outputs[0].take_back()

    # The end of the process

    def reaped(self, status: int, usage: resource.struct_rusage) -> None:
        assert self._process is not None
        self._ended = (status, usage, time.monotonic() - self._began)
        if status in KILLED:
            self._out_of_memory = memory.kills() > self._kills_before
        if self._timer is not None:
            self._timer.cancel()
        self._process.returncode = status  # reaped here, so that subprocess must not wait for it
        if self.input is not None:
            self.input.close()
        self._loop.later(DRAIN_GRACE, self._leave_outputs)
        self._finish_if_over()

    def _leave_outputs(self) -> None:
        for output in self._outputs:
            output.leave_after_rest()

    def _finish_if_over(self) -> None:
        over = self._ended is not None and all(output.ended for output in self._outputs)
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
            "out_of_memory": self._out_of_memory,
        }

    def _close(self) -> None:
        for output in self._outputs:
            output.close()
        if self.input is not None:
            self.input.close()

    def _close_far_ends(self) -> None:
        for fd in {fd for fd in self._far_ends if fd is not None}:
            os.close(fd)

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
        return processes.alive(found, table) | marked(self.exec_id, table, found)

    def signal(self, signum: int) -> None:
        if not self._finished:
            processes.send_signal(self.members(), signum)

    def resize(self, columns: int, rows: int) -> None:
        # Once everybody has left it, it is closed, and its number may be another's.
        if self._terminal is not None and not self._outputs[0].ended:
            terminal.resize(self._terminal, columns, rows)

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
        if self._terminal is not None:
            processes.send_signal(members, signal.SIGHUP)  # shells at a terminal do not listen to SIGTERM
        _ask_to_end(members)
        self._see_to_end()

    def _see_to_end(self) -> None:
        assert self._kill_at is not None
        if time.monotonic() >= self._kill_at:
            processes.kill_all(self.members)
        self._finish_if_over()
        if not self._finished:
            self._loop.later(POLL, self._see_to_end)

    def _time_out(self) -> None:
        self._timed_out = True
        self.terminate(KILL_GRACE)


def marked(exec_id: str, table: Optional[processes.Table] = None, known: Iterable[int] = ()) -> Set[int]:
    """The living processes that were started with the mark of a command, without the ``known`` ones."""
    table = processes.scan() if table is None else table
    unknown = processes.alive(set(table).difference(known, {os.getpid()}), table)
    return {pid for pid in unknown if processes.has_variable(pid, MARK.encode(), exec_id.encode())}


def sweep(loop: Loop, find: Callable[[], Set[int]], grace: float, then: Callable[[], None]) -> None:
    """SIGTERM to what ``find`` finds, after ``grace`` seconds SIGKILL; ``then`` when nothing is left."""
    kill_at = time.monotonic() + grace

    def look() -> None:
        if time.monotonic() >= kill_at:
            processes.kill_all(find)
        if find():
            loop.later(POLL, look)
        else:
            then()

    _ask_to_end(find())
    look()


def _ask_to_end(members: Set[int]) -> None:
    processes.send_signal(members, signal.SIGTERM)
    processes.send_signal(members, signal.SIGCONT)


def _nobody(_: int) -> None:
    """Is told what a command read that was sent nothing."""
