"""The detached daemon's main: settings from its arguments, a log file, and word to whoever started it."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from yaosb_jupyter.daemon.log import log_to_file
from yaosb_jupyter.daemon.place import Place, prepare
from yaosb_jupyter.daemon.process import run
from yaosb_jupyter.errors import NotAvailableError, SandboxError
from yaosb_jupyter.settings import load_settings
from yaosb_jupyter.wire.errors import error_to_json

log = logging.getLogger(__name__)


def main(argv: Sequence[str]) -> int:
    arguments = _parser().parse_args(argv)
    word = _Word(arguments.ready_fd, arguments.lock_fd)
    try:
        settings = load_settings(data_dir=arguments.data_dir, runtime_dir=arguments.runtime_dir)
        prepare(Place.of(settings))
        log_to_file(Place.of(settings).log)
        asyncio.run(run(settings, idle_exit=settings.daemon_idle_exit, ready=lambda: word.say({"ready": True})))
    except Exception as error:
        log.exception("the daemon has failed")
        told = error if isinstance(error, SandboxError) else NotAvailableError(f"the daemon has failed: {error!r}")
        word.say({"error": error_to_json(told)})
        return 1
    return 0


class _Word:
    """Said once, to whoever waits at the other end of the pipe; then others may start a daemon."""

    def __init__(self, pipe: int, lock: int) -> None:
        self._pipe = pipe
        self._descriptors = [pipe, lock]
        for descriptor in self._descriptors:
            os.set_inheritable(descriptor, False)

    def say(self, message: dict[str, Any]) -> None:
        if not self._descriptors:
            return
        try:
            os.write(self._pipe, json.dumps(message).encode())
        except OSError:
            pass  # the starter did not wait
        while self._descriptors:
            os.close(self._descriptors.pop())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m yaosb_jupyter.daemon")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--runtime-dir", type=Path, required=True)
    parser.add_argument("--ready-fd", type=int, required=True, help="a pipe that is told how the start went")
    parser.add_argument("--lock-fd", type=int, required=True, help="the start lock, held until then")
    return parser
