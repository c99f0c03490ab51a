"""Unprivileged users for the sandboxes of a root daemon: each has its own, of all daemons of this host."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Set
from pathlib import Path

from yaosb_jupyter.errors import LimitExceededError

REGISTRY = Path("/var/lib/yaosb/uids")
"""One link for each user given out, to the workspace whose files are its; a link to nothing is free again."""


def give_user(uids: tuple[int, int], workspace: Path, registry: Path = REGISTRY) -> int:
    """A uid that no other sandbox has, as long as the directory ``workspace`` is there.

    Raises `LimitExceededError`, `OSError`. Blocks.
    """
    registry.mkdir(parents=True, exist_ok=True, mode=0o700)
    busy = _running_users()
    for uid in range(uids[0], uids[1] + 1):
        link = registry / str(uid)
        if uid in busy or (link.is_symlink() and link.exists()):
            continue
        with contextlib.suppress(FileNotFoundError):
            link.unlink()
        try:
            link.symlink_to(workspace)
        except FileExistsError:  # another daemon was faster
            continue
        return uid
    raise LimitExceededError(
        f"all users from {uids[0]} to {uids[1]} are taken", hint="remove sandboxes, or give the pool a larger uid_range"
    )


def _running_users() -> Set[int]:
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - names only, twice as fast
        with contextlib.suppress(OSError):
            found.add(os.stat(f"/proc/{pid}").st_uid)  # noqa: PTH116
    return found
