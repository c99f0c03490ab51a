"""The guest: started with one line of JSON on stdin, it serves its link until TERM or the end of its main process.

The line: ``socket`` path to dial, ``key`` for the HELLO, ``workdir``, ``cmd`` and ``env`` of the main process if there
is to be one, ``confinement`` and ``limits`` (see `confinement`) for the commands, ``patience`` seconds that these go
on without a link. The environment of the commands is the guest's own with what each asks for.
"""

from __future__ import annotations

import json
import os
import signal
from typing import Any, Dict

from . import dial, frames, later, libc
from .confinement import confine, limit
from .link import Link
from .listen import Listeners
from .loop import Loop
from .service import Service, warn
from .spawn import Spawner, StartError

LOST_LINK_PATIENCE = 60.0
LOG_PATIENCE = 2.0
"""How long the host has for taking the last words of the main process."""
POLL = 0.01


def main() -> int:
    config = _read_config()
    limit(config.get("limits") or {})
    confinement = config.get("confinement") or {}
    apart = bool(confinement.get("apart"))
    if confinement and not apart:
        confine(confinement)
    spawner = Spawner((lambda: confine(confinement)) if apart else None)
    libc.prctl(libc.PR_SET_DUMPABLE, 0)
    libc.prctl(libc.PR_SET_CHILD_SUBREAPER, 1)
    loop = Loop()
    service = Service(loop, spawner, config["workdir"], config.get("patience", LOST_LINK_PATIENCE))
    hello = {"major": frames.MAJOR, "minor": frames.MINOR, "key": config["key"]}
    link = Link(loop, config["socket"], hello, service.serve)
    denied = {"*", "unix"} & set(confinement.get("sockets") or ())
    listeners = Listeners(loop, link.open, reachable=not denied)
    service.offer(dial.operations(loop))
    service.offer(listeners.operations())
    service.offer(later.operations(loop, config["workdir"]))
    hello["features"] = service.features

    def end(code: int) -> None:
        def leave(patience: float = LOG_PATIENCE) -> None:
            if patience > 0 and (service.logs_owed or not link.flushed):
                loop.later(POLL, lambda: leave(patience - POLL))
            else:
                link.goodbye("ended")
                loop.stop(code)

        service.end(leave)

    loop.on_signal(signal.SIGTERM, lambda: end(0))
    loop.on_signal(signal.SIGINT, lambda: None)  # an ignored signal would stay ignored in the commands
    if config.get("services"):
        try:
            for name in config["services"]:
                listeners.begin(name)
        except OSError as error:
            warn("its sockets are missing: %s" % error)
    if config.get("cmd"):
        try:
            service.run_main(config["cmd"], config.get("env") or {}, end)
        except StartError as error:
            warn(str(error))
            return error.exit_code
    link.dial()
    return loop.run()


def _read_config() -> Dict[str, Any]:
    """Byte by byte up to the newline would be slow, and nothing follows it: the descriptor is replaced."""
    with os.fdopen(os.dup(0), "rb") as stdin:
        config = json.loads(stdin.readline())
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return dict(config)
