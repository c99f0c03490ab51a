"""Starting a command: own session, no inherited descriptors, the first to go when memory is short."""

from __future__ import annotations

import errno
import os
import queue
import subprocess
import threading

from .terminal import take_as_controlling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Sequence

MORE_LIKELY_KILLED = b"500"
AS_BEFORE = b"0"


class StartError(Exception):
    """A command could not be started.

    ``exit_code`` as a shell tells it: 127 not found, 126 found but not startable; ``errno`` of the system, or 0.
    """

    def __init__(self, message: str, exit_code: int, errno: Optional[int] = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.errno = errno or 0


class Spawner:
    """Starts processes.

    With ``confine``, they come from a thread of their own that calls it first: confinement is a property of threads
    that children inherit, so the commands are confined and the guest itself, beside them, is not.
    """

    def __init__(self, confine: Optional[Callable[[], None]] = None) -> None:
        # Opened before the guest makes itself undumpable, which gives its /proc files to root.
        try:
            self._oom = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        except OSError:
            self._oom = -1  # /proc is read-only here: commands run without
        self._null = os.open(os.devnull, os.O_RDWR)
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._apart = confine is not None
        if confine is not None:
            threading.Thread(target=self._work, daemon=True).start()
            self._in_thread(confine)

    def spawn(
        self,
        argv: List[str],
        cwd: str,
        env: Dict[str, str],
        ends: Sequence[Optional[int]],
        *,
        in_terminal: bool = False,
    ) -> subprocess.Popen[bytes]:
        """``ends`` for stdin (None reads as empty), stdout and stderr; ``in_terminal`` the first is one to control.

        Raises `StartError`.
        """
        stdin, stdout, stderr = ends

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                argv,
                cwd=cwd,
                env=env,
                stdin=self._null if stdin is None else stdin,
                stdout=stdout,
                stderr=stderr,
                close_fds=False,  # all of ours close on exec
                start_new_session=True,
                # The other thread of a guest only waits; it holds no lock that the child could need.
                preexec_fn=take_as_controlling if in_terminal else None,  # noqa: PLW1509
            )

        # A process may raise its score and take that back: the child is born while it is raised.
        self._set_oom_score(MORE_LIKELY_KILLED)
        try:
            process: subprocess.Popen[bytes] = self.call(start)
            return process
        except OSError as error:
            raise _start_error(error, argv, cwd) from None
        except (ValueError, subprocess.SubprocessError) as error:
            raise StartError(str(error), 126) from None
        finally:
            self._set_oom_score(AS_BEFORE)

    def _set_oom_score(self, score: bytes) -> None:
        try:
            os.pwrite(self._oom, score, 0)
        except OSError:
            pass  # not every system lets it be raised

    def call(self, function: Callable[[], Any]) -> Any:
        """Calls it confined as the commands are."""
        return self._in_thread(function) if self._apart else function()

    def _in_thread(self, call: Callable[[], Any]) -> Any:
        done = threading.Lock()
        done.acquire()
        outcome: List[Any] = []

        def run() -> None:
            try:
                outcome.extend((call(), None))
            except BaseException as error:
                outcome.extend((None, error))
            done.release()

        self._calls.put(run)
        done.acquire()
        result, error = outcome
        if error is not None:
            raise error
        return result

    def _work(self) -> None:
        while True:
            self._calls.get()()


def _start_error(error: OSError, argv: List[str], cwd: str) -> StartError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    if error.filename == cwd and argv[0] != cwd:
        return StartError("working directory %s: %s" % (cwd, reason), 126, error.errno)
    missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
    message = "%s: %s" % (argv[0], "command not found" if missing else reason)
    return StartError(message, 127 if missing else 126, error.errno)
