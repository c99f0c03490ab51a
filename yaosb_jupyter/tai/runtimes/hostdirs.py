"""Directories of the host that may be the workspace of a sandbox: one rule for every runtime. Blocks: for threads."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from yaosb_jupyter.errors import InvalidOptionError

_SYSTEM = tuple(
    Path(path)
    for path in (
        *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys"),
        *("/usr", "/var/cache", "/var/lib", "/var/log", "/var/run", "/var/spool"),
    )
)
_USERS = tuple(Path(path) for path in ("/dev/shm", "/run/media", "/usr/local/src", "/usr/src"))
"""Where people's files are all the same."""
_MOST_ENTRIES = 20_000


def check_host_directory(directory: Path, sandbox: str) -> None:
    """Raises `InvalidOptionError` for a directory of the system's, one that holds sockets, and one of root's to a root
    daemon, whose sandboxes run as the directory's owner. What is not there is left to who mounts it."""
    real = directory.resolve()
    if not real.is_dir():
        return
    reason = _of_the_system(real) or _socket_in(real) or _of_root(real)
    if reason:
        raise InvalidOptionError(
            f"workspace={str(directory)!r} {reason[0]}", sandbox=sandbox, hint=f"{reason[1]}, or leave workspace out"
        )


def _of_the_system(real: Path) -> tuple[str, str] | None:
    if any(real.is_relative_to(users) and real != users for users in _USERS):
        return None
    if any(real.is_relative_to(system) or system.is_relative_to(real) for system in _SYSTEM):
        return "is the system's", "name a directory of your own"
    return None


def _socket_in(top: Path) -> tuple[str, str] | None:
    """The first socket or device among the first entries; links are not followed."""
    waiting, seen = [str(top)], 0
    while waiting and seen < _MOST_ENTRIES:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:  # gone meanwhile, or closed to us
            for entry in entries:
                seen += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif _reaches_out(entry):
                    what = f"holds a socket or a device: {entry.path}"
                    return what, "name one without, since who listens there would be reached"
    return None


def _reaches_out(entry: os.DirEntry[str]) -> bool:
    if entry.is_file(follow_symlinks=False) or entry.is_symlink():
        return False
    return not stat.S_ISFIFO(entry.stat(follow_symlinks=False).st_mode)


def _of_root(real: Path) -> tuple[str, str] | None:
    if os.geteuid() == 0 and real.stat().st_uid == 0:
        return "belongs to root, and no sandbox runs as root", "give it to an unprivileged user (chown)"
    return None
