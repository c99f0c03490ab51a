"""Long work of one stream, done a slice at a time on the loop, so that other streams go on."""

from __future__ import annotations

import json
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, Generator, Optional, Union

from . import frames
from .link import Handler, Stream
from .loop import Loop, Timer
from .records import RecordError
from .walk import TreeError

SLICE = 0.002
BUSY = 5.0
"""Seconds after which a job that has nothing to send yet says that it works."""


class Wait:
    """The step of a job that goes on when something arrives, or when it is woken."""


WAIT = Wait()

Step = Union[bytes, Dict[str, Any], Wait, None]
Steps = Generator[Step, None, Optional[Dict[str, Any]]]


class Job(Handler):
    """Takes the steps of an operation: bytes are sent as data, a dict as a message; what it returns is the result."""

    def __init__(self, loop: Loop, stream: Stream, operation: Callable[[Job], Steps]) -> None:
        self.loop = loop
        self._stream = stream
        self._inbox: Deque[bytes] = deque()
        self._eof = False
        self._kind = frames.DATA
        self._unsent = memoryview(b"")
        self._timer: Optional[Timer] = None
        self._spoke = time.monotonic()
        self._steps = operation(self)
        stream.handler = self
        self.wake()

    def take(self) -> Optional[bytes]:
        """Data that has arrived; None where there is none yet."""
        if not self._inbox:
            return None
        data = self._inbox.popleft()
        self._stream.took(len(data))
        return data

    @property
    def ended(self) -> bool:
        """No data is there and none will come."""
        return self._eof and not self._inbox

    def wake(self) -> None:
        if self._timer is None and self._stream.open:
            self._go()

    def data(self, payload: bytes) -> None:
        self._inbox.append(payload)
        self.wake()

    def eof(self) -> None:
        self._eof = True
        self.wake()

    def writable(self) -> None:
        self.wake()

    def cancel(self) -> None:
        self._stop()
        self._stream.fail("Cancelled", "cancelled")

    def lost(self) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._steps.close()

    def _go(self) -> None:
        self._timer = None
        until = time.monotonic() + SLICE
        try:
            while self._flush():
                step = next(self._steps)
                if isinstance(step, Wait):
                    return
                self._put(step)
                if time.monotonic() > until:
                    self._pause()
                    return
        except StopIteration as end:
            self._stream.close(end.value or {})
        except TreeError as error:
            self._stream.fail("OSError", str(error), errno=error.errno, at=error.filename)
        except OSError as error:
            self._stream.fail("OSError", str(error), errno=error.errno)
        except RecordError as error:
            self._stream.fail("RecordError", str(error))
        except (ImportError, KeyError, TypeError, ValueError) as error:
            self._stream.fail("InvalidOptionError", "bad request: %r" % error)

    def _put(self, step: Union[bytes, Dict[str, Any], None]) -> None:
        if isinstance(step, dict):
            self._kind, self._unsent = frames.MESSAGE, memoryview(json.dumps(step, separators=(",", ":")).encode())
        elif step:
            self._kind, self._unsent = frames.DATA, memoryview(step)

    def _flush(self) -> bool:
        """Whether all is sent; the rest goes when there is room."""
        while self._unsent:
            room = min(self._stream.room(), frames.MAX_PAYLOAD)
            if room < (len(self._unsent) if self._kind == frames.MESSAGE else 1):
                return False
            self._stream.send(self._kind, self._unsent[:room])
            self._unsent = self._unsent[room:]
            self._spoke = time.monotonic()
        return True

    def _pause(self) -> None:
        if not self._unsent and time.monotonic() > self._spoke + BUSY:
            self._put({"busy": True})
            self._flush()
        self._timer = self.loop.later(0, self._go)
