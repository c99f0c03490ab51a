"""Starting the guest of one sandbox under a means, and what is found when it started."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yaosb_jupyter.errors import RuntimeUnavailableError
from yaosb_jupyter.tai.runtimes.embedded.handles import ProcessHandle
from yaosb_jupyter.tai.runtimes.embedded.launchers import Launchers

START_TIMEOUT = 20.0
_released: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True, kw_only=True)
class Launch:
    """``argv`` to run; ``bubblewrapped``: it is bwrap, which tells which process it started; ``user`` to become
    before; ``stage``: paths that user may not reach (see `launcher`); ``config`` the guest's line."""

    argv: Sequence[str]
    env: Mapping[str, str]
    config: Mapping[str, Any]
    bubblewrapped: bool = False
    user: tuple[int, int] | None = None
    stage: Sequence[str] = ()
    directory: str = "/"


@dataclass(frozen=True, kw_only=True)
class Launched:
    """``guest`` the main process as this host sees it; ``child`` what we started and must reap."""

    guest: ProcessHandle
    child: subprocess.Popen[bytes]

    def begin(self, config: Mapping[str, Any]) -> None:
        """Lets the guest go on, which waits for its line."""
        assert self.child.stdin is not None
        try:
            with self.child.stdin as stdin:
                stdin.write(json.dumps(config).encode() + b"\n")
        except BrokenPipeError:
            pass  # it ended already, which its log explains


def start(launch: Launch, log: Path, launchers: Launchers) -> Launched:
    """Starts it up to where the guest waits. Raises `RuntimeUnavailableError` with what it complained of. Blocks."""
    _reap_released()
    try:
        if launch.user is not None and launch.stage:
            child, pid = _staged(launch, launch.user, log, launchers)
        elif launch.bubblewrapped:
            child, pid = _bubblewrapped(launch, log)
        else:
            child = _run(launch, launch.argv, log, ())
            pid = child.pid
    except OSError as error:
        raise RuntimeUnavailableError(f"{launch.argv[0]} could not be started: {error}") from error
    guest = None if pid is None else ProcessHandle.of(pid)
    if guest is None:
        end(child)
        raise RuntimeUnavailableError(f"the sandbox could not be started: {complaint(log)}")
    return Launched(guest=guest, child=child)


def _staged(
    launch: Launch, user: tuple[int, int], log: Path, launchers: Launchers
) -> tuple[subprocess.Popen[bytes], int | None]:
    launcher = launchers.take()
    launcher.order(launch.argv[1:], user=user, stage=launch.stage, log=log)
    try:
        return launcher.child, _told_pid(launcher.told)
    finally:
        os.close(launcher.told)


def _bubblewrapped(launch: Launch, log: Path) -> tuple[subprocess.Popen[bytes], int | None]:
    receiver, sender = os.pipe()
    try:
        try:
            argv = [launch.argv[0], "--info-fd", str(sender), *launch.argv[1:]]
            child = _run(launch, argv, log, (sender,))
        finally:
            os.close(sender)
        return child, _told_pid(receiver)
    finally:
        os.close(receiver)


def release(child: subprocess.Popen[bytes]) -> None:
    """It outlives its `Launched`: reaped by a later start, or by init when this process has ended."""
    _released.append(child)


def _reap_released() -> None:
    _released[:] = [child for child in _released if child.poll() is None]


def end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    if child.stdin is not None:
        child.stdin.close()


def complaint(log: Path) -> str:
    """The last line that a guest, or what starts it, wrote before it ended."""
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1][:500] if lines else "it gave no reason"


def _run(launch: Launch, argv: Sequence[str], log: Path, fds: tuple[int, ...]) -> subprocess.Popen[bytes]:
    user: dict[str, Any] = {}
    if launch.user is not None:
        user = {"user": launch.user[0], "group": launch.user[1], "extra_groups": []}
    with log.open("wb") as complaints:
        return subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=complaints,
            stderr=complaints,
            env=dict(launch.env),
            cwd=launch.directory,
            pass_fds=fds,
            start_new_session=True,
            **user,
        )


def _told_pid(receiver: int) -> int | None:
    """The ``child-pid`` that bubblewrap tells, as one JSON object; None where it ended without."""
    told = b""
    deadline = time.monotonic() + START_TIMEOUT
    while b"}" not in told:
        ready, _, _ = select.select([receiver], [], [], max(0.0, deadline - time.monotonic()))
        piece = os.read(receiver, 4096) if ready else b""
        if not piece:
            return None
        told += piece
    return int(json.loads(told)["child-pid"])
