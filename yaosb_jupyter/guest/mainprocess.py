"""A main process that writes to the guest's own outputs, which an engine keeps as the sandbox's log."""

from __future__ import annotations

import os
import resource

from .spawn import Spawner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List


class MainProcess:
    """``ended`` is told its result, as far as the end of a main process needs it."""

    def __init__(self, ended: Callable[[Dict[str, Any]], None]) -> None:
        self._ended = ended

    def start(self, spawner: Spawner, argv: List[str], cwd: str, env: Dict[str, str]) -> None:
        """Raises `spawn.StartError`."""
        self._process = spawner.spawn(argv, cwd, env, (None, 1, 2))
        self.pid = self._process.pid

    def reaped(self, status: int, _: resource.struct_rusage) -> None:
        self._process.returncode = status
        code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        self._ended({"exit_code": code})
