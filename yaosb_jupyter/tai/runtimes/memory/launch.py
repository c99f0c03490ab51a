"""Starting a process of a memory environment on this host. All block."""

from __future__ import annotations

import os
import pwd
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from yaosb_jupyter.errors import CommandNotFoundError
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec
from yaosb_jupyter.tai.runtimes.memory.engine import Environment
from yaosb_jupyter.tai.runtimes.memory.processes import await_marks
from yaosb_jupyter.types import WORKDIR

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A process to start. ``tree`` is the mark by which `processes.find` finds it and what it starts."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    user: tuple[int, int] | None
    tree: bytes

    def start(self, *, stdin: bool = False) -> subprocess.Popen[bytes]:
        """Raises `CommandNotFoundError`."""
        if not self.cwd.is_dir():
            raise CommandNotFoundError(f"no such working directory: {str(self.cwd)!r}", exit_code=126)
        uid, gid = self.user or (None, None)
        try:
            process = subprocess.Popen(
                self.argv,
                bufsize=0,
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.cwd,
                env=self.env,
                user=uid,
                group=gid,
                extra_groups=None if uid is None else (),
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise CommandNotFoundError(f"no such command: {self.argv[0]!r}", exit_code=127) from error
        except OSError as error:
            raise CommandNotFoundError(
                f"cannot start {self.argv[0]!r}: {error.strerror or error}", exit_code=126
            ) from error
        await_marks(process.pid)
        return process


def prepare(
    environment: Environment,
    argv: Sequence[str],
    *,
    cwd: str = "",
    env: Mapping[str, str] | None = None,
    user: str = "",
) -> Launch:
    """How to start ``argv`` in an environment. Raises `CommandNotFoundError` for an unknown user."""
    spec = environment.spec
    tree = f"YAOSB_TREE={secrets.token_hex(8)}".encode()
    marks = dict(mark.decode().split("=", 1) for mark in (environment.mark, tree))
    base = {"PATH": _PATH, "HOME": str(spec.workspace), "LANG": "C.UTF-8"}
    return Launch(
        argv=argv,
        cwd=_directory(spec, cwd),
        env={**base, **spec.env, **(env or {}), **marks},
        user=_user(user or spec.user),
        tree=tree,
    )


def _directory(spec: EnvironmentSpec, cwd: str) -> Path:
    """The host's directory for one of the environment's: there, the workspace is at `WORKDIR`."""
    path = os.path.normpath(Path(spec.workdir or WORKDIR, cwd))
    if path == WORKDIR or path.startswith(WORKDIR + "/"):
        return spec.workspace / path[len(WORKDIR) + 1 :]
    return Path(path)


def _user(user: str) -> tuple[int, int] | None:
    """The ids of ``name``, ``uid`` or ``uid:gid``; None for our own."""
    if not user:
        return None
    name, _, group = user.partition(":")
    try:
        entry = pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(name)
        uid, gid = entry.pw_uid, int(group) if group else entry.pw_gid
    except (KeyError, ValueError):
        if not name.isdigit():
            raise CommandNotFoundError(f"no such user: {user!r}", exit_code=126) from None
        uid = int(name)
        gid = int(group) if group.isdigit() else uid
    if os.geteuid() != 0 and uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise CommandNotFoundError(f"only root can run commands as {user!r}", exit_code=126)
    return uid, gid
