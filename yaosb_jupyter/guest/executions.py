"""The commands of a sandbox, each known by an id that the host chose: asked for twice, it runs once."""

from __future__ import annotations

import os
import time

from . import frames
from .command import Command, marked, sweep
from .execution import CANCEL_GRACE, Execution
from .link import Stream
from .loop import Loop
from .spawn import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Tuple

    Start = Callable[[Command, List[str], str, Dict[str, str], float], None]

CLIENT_PATIENCE = 60.0
"""How long a command in the foreground goes on without its reader, while the host is there."""
KEPT_IN_BACKGROUND = 32
KEPT_BYTES = 16 << 20
OVERHEAD = 1 << 10
FORGOTTEN = 1024
MOST_LISTED = 500
ROOM = frames.MAX_PAYLOAD // 2
"""Bytes of an answer for the arguments in it, together."""


class Executions:
    """``start`` starts a command's process, or raises `StartError`; ``patience`` seconds without a link.

    Ends and the output before them are kept until the host has acknowledged them, within bounds.
    """

    def __init__(self, loop: Loop, start: Start, workdir: str, patience: float) -> None:
        self._loop = loop
        self._start_process = start
        self._workdir = workdir
        self._patience = patience
        self._known: Dict[str, Execution] = {}
        self._forgotten: Dict[str, None] = {}

    def operations(self) -> Dict[str, Callable[[Stream, Dict[str, Any]], None]]:
        return {
            "exec": self._exec,
            "spawn": self._spawn,
            "attach": self._attach,
            "control": self._control,
            "sweep": self._sweep,
            "commands": self._commands,
            "forget": self._forget,
        }

    def link_is_back(self) -> None:
        """The host is there: whose reader does not come soon, has none any more."""
        for execution in self._known.values():
            if execution.deadline is not None:
                self._expect_reader(execution, min(CLIENT_PATIENCE, self._patience))

    @property
    def owed(self) -> bool:
        """Whether the host has yet to take the last words of a command, and its end."""
        return any(execution.awaited for execution in self._known.values())

    def ending(self) -> None:
        """The sandbox is stopping: what this ends is told so."""
        for execution in self._known.values():
            execution.ending = True

    # Operations

    def _exec(self, stream: Stream, request: Dict[str, Any]) -> None:
        execution = self._begin(stream, request, background=False)
        if execution is not None:
            execution.attach(stream, 0)

    def _spawn(self, stream: Stream, request: Dict[str, Any]) -> None:
        execution = self._begin(stream, request, background=True)
        if execution is not None:
            stream.close({"command": execution.info(ROOM)})

    def _attach(self, stream: Stream, request: Dict[str, Any]) -> None:
        since = request.get("since")
        execution = self.find(stream, request)
        if execution is not None:
            execution.attach(stream, None if since is None else int(since), holds=bool(request.get("holds")))

    def _control(self, stream: Stream, request: Dict[str, Any]) -> None:
        execution = self.find(stream, request)
        if execution is not None:
            if execution.result is not None and "grace" in request:
                self._sweep(stream, request)
                return
            if execution.first_time(request["token"]):
                execution.control(request)
            stream.close({})

    def _sweep(self, stream: Stream, request: Dict[str, Any]) -> None:
        """Ends what a command left behind that has ended itself; answered when it is gone."""
        execution = self._known.get(request["exec_id"])
        mark = str(request["exec_id"])
        command = execution.command if execution is not None else None
        find = command.members if command is not None else lambda: marked(mark)
        sweep(self._loop, find, float(request["grace"]), lambda: stream.close({}))

    def _commands(self, stream: Stream, _: Dict[str, Any]) -> None:
        latest = list(self._known.values())[-MOST_LISTED:]
        share = ROOM // max(len(latest), 1)
        stream.close({"commands": [execution.info(share) for execution in latest]})

    def _forget(self, stream: Stream, request: Dict[str, Any]) -> None:
        for exec_id in request["exec_ids"]:
            execution = self._known.get(exec_id)
            if execution is not None and execution.result is not None:
                del self._known[exec_id]
        stream.close({})

    # The table

    def find(self, stream: Stream, request: Dict[str, Any]) -> Optional[Execution]:
        """The command that is asked for; the stream is told where there is none."""
        execution = self._known.get(request["exec_id"])
        if execution is None:
            stream.fail("NotFoundError", "no such command is known here")
        return execution

    def _begin(self, stream: Stream, request: Dict[str, Any], *, background: bool) -> Optional[Execution]:
        """The command of that id, started if it is new; the stream is told where there is none."""
        exec_id = str(request["exec_id"])
        execution = self._known.get(exec_id)
        if execution is not None:
            return execution
        if exec_id in self._forgotten:
            stream.fail("NotFoundError", "its result was not asked for in time")
            return None
        try:
            execution = self._start(exec_id, request, background)
        except StartError as error:
            stream.fail("CommandNotFoundError", str(error), exit_code=error.exit_code, errno=error.errno)
            return None
        self._known[exec_id] = execution
        return execution

    def _start(self, exec_id: str, request: Dict[str, Any], background: bool) -> Execution:
        argv = [os.fsencode(part).decode("utf-8", "surrogateescape") for part in request["argv"]]
        env = dict(os.environ, **request.get("env", {}))
        cwd = os.path.join(self._workdir, request.get("cwd", ""))
        execution = Execution(exec_id, argv, background=background, left=self._left, ended=self._ended)
        try:
            command = Command(
                self._loop,
                exec_id,
                execution,
                execution.done,
                execution.took if request.get("stdin") else None,
                _size(request.get("size")),
            )
        except OSError as error:
            raise StartError("it cannot be given its descriptors: %s" % error, 126, error.errno) from None
        self._start_process(command, argv, cwd, env, float(request.get("timeout") or 0))
        execution.command = command
        return execution

    def _ended(self, _: Execution) -> None:
        """Keeps what nobody follows within bounds: the oldest goes."""
        ended = [one for one in self._known.values() if one.result is not None and not one.followed]
        spare = len([one for one in ended if one.background]) - KEPT_IN_BACKGROUND
        total = sum(one.ring.held + OVERHEAD for one in ended)
        for execution in ended:
            if total > KEPT_BYTES or (execution.background and spare > 0):
                spare -= execution.background
                total -= execution.ring.held + OVERHEAD
                del self._known[execution.exec_id]
                self._forgotten[execution.exec_id] = None
        while len(self._forgotten) > FORGOTTEN:
            del self._forgotten[next(iter(self._forgotten))]

    # Commands that nobody follows

    def _left(self, execution: Execution) -> None:
        self._expect_reader(execution, self._patience)

    def _expect_reader(self, execution: Execution, patience: float) -> None:
        execution.deadline = time.monotonic() + patience
        self._loop.later(patience, lambda: self._look_for_reader(execution))

    def _look_for_reader(self, execution: Execution) -> None:
        if execution.deadline is not None and time.monotonic() >= execution.deadline:
            execution.terminate(CANCEL_GRACE)


def _size(told: Any) -> Optional[Tuple[int, int]]:
    return None if told is None else (int(told[0]), int(told[1]))
