"""Ending processes of a sandbox by their command lines, through its guest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from yaosb_jupyter.errors import InvalidOptionError, SandboxLostError
from yaosb_jupyter.link.guest import CALL_TIMEOUT, GuestLink
from yaosb_jupyter.link.stream import RemoteError


@dataclass(frozen=True, kw_only=True)
class Killed:
    """``pids`` that matched; ``all_gone`` unless some of them could not be ended, being another user's."""

    pids: Sequence[int]
    all_gone: bool


def check_pattern(pattern: str) -> re.Pattern[str]:
    """Raises `InvalidOptionError`."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InvalidOptionError(f"pattern={pattern!r} is not a regular expression: {error}") from error


async def kill_matching(link: GuestLink, pattern: str, grace: float, *, sandbox: str) -> Killed:
    """Raises `InvalidOptionError` for a bad pattern, `SandboxLostError`."""
    check_pattern(pattern)
    try:
        told = await link.call("kill", {"pattern": pattern, "grace": grace}, timeout=grace + CALL_TIMEOUT)
    except RemoteError as error:
        raise SandboxLostError(f"its guest refused: {error}", sandbox=sandbox) from error
    pids = told.get("pids")
    return Killed(
        pids=[pid for pid in pids if isinstance(pid, int)] if isinstance(pids, list) else [],
        all_gone=not told.get("left"),
    )
