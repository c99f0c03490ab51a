"""Run inside a trial sandbox: tries to get out, and tells as JSON what it could. Standard library only."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from typing import Any


def main(given: dict[str, Any]) -> dict[str, bool]:
    """``given``: things of the host outside the sandbox that anybody may use, were there no confinement."""
    return {
        "reads_files": _can(lambda: _read(given["file"])),
        "writes_files": _can(lambda: _write(given["directory"] + "/written")),
        "sees_metadata": _can(lambda: os.stat(given["file"])),  # noqa: PTH116
        "changes_metadata": _can(lambda: os.utime(given["file"])),
        "path_sockets": _can(lambda: _connect(socket.AF_UNIX, given["socket"])),
        "abstract_sockets": _can(lambda: _connect(socket.AF_UNIX, "\0" + given["abstract"])),
        "host_ports": _can(lambda: _connect(socket.AF_INET, ("127.0.0.1", given["port"]))),
        "network": _can(_route),
        "sees_processes": _can(lambda: _same_process(given["pid"], given["started"])),
        "signals_processes": _can(lambda: _signal(given["pid"], given["started"])),
    }


def _can(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


def _read(path: str) -> None:
    with open(path, "rb") as file:  # noqa: PTH123 - pathlib is slow to load
        file.read(1)


def _write(path: str) -> None:
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(b"x")


def _connect(family: int, address: Any) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(2)
        client.connect(address)


def _route() -> None:
    """Whether the kernel knows a way out. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("198.51.100.1", 9))


def _same_process(pid: int, started: int) -> None:
    with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
        fields = file.read().rpartition(b")")[2].split()
    if int(fields[19]) != started:
        raise ProcessLookupError


def _signal(pid: int, started: int) -> None:
    _same_process(pid, started)
    os.kill(pid, 0)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))))
