"""The guest: started with one line of JSON on stdin, it serves its link until TERM or the end of its main process.

The line: ``socket`` path to dial, ``reception`` the abstract socket where the host's relay knocks with ``knock``, which
also tells a second guest of a sandbox that it is one too many; ``key`` for the HELLO, ``workdir``, ``workspace`` where
that is another directory, ``cmd`` and ``env`` of the main process if there is to be one and ``own_outputs`` if that
writes to the guest's, ``starter`` the program that starts the image's services, ``confinement`` and ``limits`` (see
`confinement`) for the commands, ``patience`` seconds that these go on without a link, ``inherits`` true where an
earlier guest may have left commands behind.
The environment of the commands is the guest's own with what each asks for.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import struct

from . import dial, frames, handover, later, libc
from .confinement import confine, limit
from .executions import Executions
from .link import Link
from .listen import Listeners
from .loop import Loop
from .reception import Reception
from .service import Service, warn
from .spawn import Spawner, StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

LOST_LINK_PATIENCE = 600.0
LAST_WORDS = 2.0
"""How long the host has for taking the last words of the main process and the commands."""
POLL = 0.01


def main() -> int:
    config = _read_config()
    limit(config.get("limits") or {})
    confinement = config.get("confinement") or {}
    apart = bool(confinement.get("apart"))
    if confinement and not apart:
        confine(confinement)
    spawner = Spawner((lambda: confine(confinement)) if apart else None)
    try:
        spawner.call(lambda: os.makedirs(config["workdir"], exist_ok=True))
    except OSError:
        pass  # told to each command that wants it
    libc.prctl(libc.PR_SET_DUMPABLE, 0)
    libc.prctl(libc.PR_SET_CHILD_SUBREAPER, 1)
    loop = Loop()
    service = Service(loop, spawner, config["workdir"])
    executions = Executions(loop, service.start, config["workdir"], config.get("patience", LOST_LINK_PATIENCE))
    hello = {"major": frames.MAJOR, "minor": frames.MINOR, "key": config["key"], "instance": os.urandom(8).hex()}
    link = Link(loop, config.get("socket", ""), hello, service.serve, executions.link_is_back)
    denied = {"*", "unix"} & set(confinement.get("sockets") or ())
    listeners = Listeners(loop, link.open, reachable=not denied)
    service.offer(executions.operations())
    service.offer(dial.operations(loop))
    service.offer(listeners.operations())
    if "socket" in config:
        service.offer(handover.operations(loop, executions, config["socket"], hello))
    service.offer(later.operations(loop, config.get("workspace", config["workdir"])))
    hello["features"] = service.features
    gc.enable()
    gc.freeze()  # what is there by then stays: later collections need not look at it
    loop.at_rest(_tidy)

    def end(code: int) -> None:
        def leave(patience: float = LAST_WORDS) -> None:
            if patience > 0 and (service.logs_owed or executions.owed or not link.flushed):
                loop.later(POLL, lambda: leave(patience - POLL))
            else:
                link.goodbye("ended")
                loop.stop(code)

        executions.ending()
        service.end(leave)

    loop.on_signal(signal.SIGTERM, lambda: end(0))
    loop.on_signal(signal.SIGINT, lambda: None)  # an ignored signal would stay ignored in the commands
    if config.get("services"):
        try:
            for name in config["services"]:
                listeners.begin(name)
        except OSError as error:
            warn("its sockets are missing: %s" % error)
    _start_services(config, service)
    if config.get("cmd"):
        try:
            service.run_main(config["cmd"], config.get("env") or {}, end, own_outputs=bool(config.get("own_outputs")))
        except StartError as error:
            warn(str(error))
            return error.exit_code
    return loop.run() if _meet_host(config, loop, link, service) else 0


def _tidy() -> None:
    """A guest that has done much is as small as a fresh one."""
    gc.collect()
    libc.trim()


def _start_services(config: Dict[str, Any], service: Service) -> None:
    """Those of the image; the sandbox goes on without them."""
    if config.get("starter"):
        try:
            service.run_main([config["starter"]], config.get("env") or {}, lambda _: None, own_outputs=True)
        except StartError as error:
            warn("its services are missing: %s" % error)


def _meet_host(config: Dict[str, Any], loop: Loop, link: Link, service: Service) -> bool:
    """False where another guest of this sandbox is here already."""

    def take(connected: socket.socket) -> None:
        credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        service.relay = struct.unpack("3i", credentials)[0]
        link.take(connected)

    if "reception" in config:
        try:
            Reception(loop, config["reception"], config["knock"].encode(), take)
        except OSError:
            return False
    if config.get("inherits"):
        service.end_leftovers()
    if "socket" in config:
        link.dial()
    return True


def _read_config() -> Dict[str, Any]:
    """Byte by byte up to the newline would be slow, and nothing follows it: the descriptor is replaced."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # for pid 1, what it does not handle does not exist
    with os.fdopen(os.dup(0), "rb") as stdin:
        line = stdin.readline()
    if not line:
        raise SystemExit("whoever started this guest has gone")
    config = json.loads(line)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    return dict(config)
