"""A command, what it wrote, and the streams that follow it: these come and go, the command stays."""

from __future__ import annotations

import json
import signal
import time
from collections import deque

from . import frames
from .command import Command
from .link import Handler, Stream
from .pipes import CHUNK
from .ring import Ring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Deque, Dict, List, Optional

CANCEL_GRACE = 2.0
STOPPED = (128 + signal.SIGTERM, 128 + signal.SIGKILL)
"""How a command ends that is ended with its sandbox."""
TOKENS = 64
NOTE = 256
"""Room that a message needs."""
SHOWN = 200


class Execution:
    """One command. In the foreground it waits for its reader; in the background the oldest output makes way.

    ``left`` is told when its last reader was lost, ``ended`` when it has its result.
    """

    def __init__(
        self,
        exec_id: str,
        argv: List[str],
        *,
        background: bool,
        left: Callable[[Execution], None],
        ended: Callable[[Execution], None],
    ) -> None:
        self.exec_id = exec_id
        self.background = background
        self.command: Optional[Command] = None
        self.ring = Ring()
        self.result: Optional[Dict[str, Any]] = None
        self.deadline: Optional[float] = None
        self.ending = False
        self._stopped = False
        self._argv = argv
        self._left = left
        self._ended = ended
        self._began = time.time()
        self._drops = background
        self._readers: List[Reader] = []
        self._waiters: List[Reader] = []
        self._tokens: Deque[str] = deque(maxlen=TOKENS)

    @property
    def followed(self) -> bool:
        return bool(self._readers)

    @property
    def awaited(self) -> bool:
        """Whether somebody has yet to be told its end."""
        return bool(self._readers or self._waiters)

    def info(self, room: int) -> Dict[str, Any]:
        """``room``: bytes for its arguments, of which what is beyond is left out."""
        return {
            "id": self.exec_id,
            "argv": _shown(self._argv, room),
            "pid": self._running.pid,
            "background": self.background,
            "started": self._began,
            "kept": self.ring.start,
            "written": self.ring.end,
            "result": self.result,
        }

    @property
    def _running(self) -> Command:
        assert self.command is not None
        return self.command

    # The command's output

    def room(self) -> int:
        return CHUNK if self._drops else self.ring.room()

    def send(self, kind: int, data: bytes) -> None:
        self.ring.append(kind, data)
        if self._drops:
            self.ring.trim()
        for reader in list(self._readers):
            reader.pump()

    def done(self, result: Dict[str, Any]) -> None:
        self.result = result
        self._stopped = self.ending and result["exit_code"] in STOPPED
        for reader in [*self._readers, *self._waiters]:
            reader.pump()
        self._ended(self)

    def tell_end(self, stream: Stream) -> None:
        """Its result; of one that was ended with the sandbox, that it was."""
        assert self.result is not None
        if self._stopped:
            stream.fail("SandboxLostError", "the sandbox was stopped while the command ran")
        else:
            stream.close(self.result)

    def taken(self, upto: int) -> None:
        """The host has this much of the output for good."""
        if not self.background:
            self.ring.release(upto)
        self._running.resume()

    def lend_output(self) -> Optional[int]:
        """The pipe of its stdout, for its reader, until `output_lent` is told; None where it cannot be had."""
        return None if self._drops or self.result is not None else self._running.lend_output()

    def output_lent(self, taken: bool) -> None:
        self._running.output_lent(taken)

    # Its input

    def write(self, reader: Reader, data: bytes) -> None:
        """The latest reader is the one who writes."""
        if self._running.input is None or self._readers[-1:] != [reader]:
            reader.stream.took(len(data))
        else:
            self._running.input.write(data)

    def finish_input(self, reader: Reader) -> None:
        if self._running.input is not None and self._readers[-1:] == [reader]:
            self._running.input.finish()

    def took(self, count: int) -> None:
        """The command has read this much, or never will."""
        if self._readers:
            self._readers[-1].stream.took(count)

    # Its readers

    def attach(self, stream: Stream, since: Optional[int], *, holds: bool = False) -> None:
        """Output from ``since`` on, without it the end only. In the foreground the latest reader is the only one.

        ``holds``: it has the pipe that was handed over, and goes on reading that.
        """
        if since is not None and not holds and self._running.take_back_output():
            self.ring.skip(since)
        reader = Reader(self, stream, since)
        stdin = self._running.input
        if since is None:
            stdin = None
            self._waiters.append(reader)
        else:
            self._make_way()
            self._readers.append(reader)
        if stdin is not None:
            stream.carry_over(stdin.waiting)
        stream.send_message(
            {
                "started": self._running.pid,
                "background": self.background,
                "received": stdin.received if stdin is not None else 0,
                "waiting": stdin.waiting if stdin is not None else 0,
            }
        )
        if since is not None:
            self.taken(since)
        reader.pump()

    def _make_way(self) -> None:
        self.deadline = None
        if not self.background and self._readers:
            self._readers.pop().stream.fail("AlreadyExistsError", "another reader has taken over")

    def leave(self, reader: Reader, *, lost: bool = False) -> None:
        for readers in (self._readers, self._waiters):
            if reader in readers:
                readers.remove(reader)
        if lost and reader.wants_output and not self.background and self.result is None:
            self._left(self)

    # What is done to it

    def first_time(self, token: Any) -> bool:
        """Whether what comes with ``token`` was not done before: its sender may not have seen the answer."""
        if token in self._tokens:
            return False
        self._tokens.append(str(token))
        return True

    def terminate(self, grace: float) -> None:
        if not self.followed:
            self._drops = True  # nobody takes what it still writes
            self._running.resume()
        self._running.terminate(grace)

    def control(self, request: Dict[str, Any]) -> None:
        if self.result is not None:
            return
        if "signal" in request:
            self._running.signal(int(request["signal"]))
        if "size" in request:
            self._running.resize(*request["size"])
        if "grace" in request:
            self.terminate(float(request["grace"]))


def _shown(argv: List[str], room: int) -> List[str]:
    shown = []
    for part in argv:
        shown.append(frames.cut(part[:SHOWN], room))
        room -= len(json.dumps(shown[-1])) + 1
        if room < NOTE:
            break
    return shown


class Reader(Handler):
    """A stream that follows a command."""

    def __init__(self, execution: Execution, stream: Stream, since: Optional[int]) -> None:
        self._execution = execution
        self.wants_output = since is not None
        self._position = execution.ring.end if since is None else min(max(since, 0), execution.ring.end)
        self.stream = stream
        stream.handler = self

    def pump(self) -> None:
        """Sends what there is and may be sent; behind all output the result."""
        ring = self._execution.ring
        if not self.wants_output:
            self._position = ring.end
        while self._position < ring.end:
            room = self.stream.room()
            if self._position < ring.start:
                if room < NOTE:
                    return
                self.stream.send_message({"lost": ring.start - self._position})
                self._position = ring.start
            elif room > 0:
                kind, piece = ring.read(self._position, min(room, frames.MAX_PAYLOAD))
                self.stream.send(kind, piece)
                self._position += len(piece)
            else:
                return
        if self._execution.result is not None:
            self._execution.leave(self)
            self._execution.tell_end(self.stream)

    def writable(self) -> None:
        if self.wants_output:
            self._execution.taken(self._position - self.stream.outstanding)
        self.pump()

    def data(self, payload: bytes) -> None:
        self._execution.write(self, payload)

    def eof(self) -> None:
        self._execution.finish_input(self)

    def cancel(self) -> None:
        """Ends a command in the foreground whose reader this is; others go on without it."""
        if self._execution.background or not self.wants_output:
            self._execution.leave(self)
            self.stream.close({})
        else:
            self._execution.terminate(CANCEL_GRACE)

    def lost(self) -> None:
        self._execution.leave(self, lost=True)
