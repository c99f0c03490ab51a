"""How the guest of a sandbox is started under each means."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from yaosb_jupyter.choices import Network
from yaosb_jupyter.guest import landlock, seccomp
from yaosb_jupyter.tai.runtimes.embedded import bubblewrap, launcher
from yaosb_jupyter.tai.runtimes.embedded.bubblewrap import GUEST, LINK_DIRECTORY, WORKSPACE, Bind
from yaosb_jupyter.tai.runtimes.embedded.launch import Launch
from yaosb_jupyter.tai.runtimes.embedded.options import Means
from yaosb_jupyter.tai.runtimes.embedded.record import EnvironmentRecord
from yaosb_jupyter.tai.runtimes.embedded.view import SETTINGS, SYSTEM, HostView, environment

SOCKET = "link.sock"
DEFAULT_TEMPORARY_SIZE = 2**30
MAX_SHARED_SIZE = 2**26

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm")
_NEVER = ("packet", "alg", "vsock")
_NEVER_WITHOUT_NAMESPACES = ("unix", "netlink", *_NEVER)
"""A path socket of the host would be in reach: docker.sock, an ssh agent, our own."""


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where one sandbox's things are on this host; ``guest`` and ``accounts`` serve all."""

    link_directory: Path
    temporary: Path
    guest: Path
    accounts: Path

    @property
    def socket(self) -> Path:
        return self.link_directory / SOCKET


def plan(
    record: EnvironmentRecord, means: Means, view: HostView, places: Places, *, bwrap: str, grouped: bool
) -> Launch:
    """``grouped``: a control group holds the limits."""
    if means.has_namespaces:
        return _bubblewrap(record, means, view, places, program=bwrap, grouped=grouped)
    return _bare(record, means, view, places, grouped=grouped)


def mark(record: EnvironmentRecord) -> tuple[str, str]:
    """A variable of all processes of the sandbox, by which they are found when they have lost their parents."""
    return "YAOSB_SANDBOX", record.spec.uid


def working_directory(record: EnvironmentRecord, means: Means, path: str = "") -> str:
    """Where a command runs that asked for ``path``: without namespaces /workspace is the directory of the host."""
    wanted = PurePosixPath(record.spec.workdir) / path
    if means.has_namespaces or not wanted.is_relative_to(WORKSPACE):
        return str(wanted)
    return str(record.spec.workspace / wanted.relative_to(WORKSPACE))


def _bubblewrap(
    record: EnvironmentRecord, means: Means, view: HostView, places: Places, *, program: str, grouped: bool
) -> Launch:
    spec = record.spec
    shown: Sequence[Bind] = bubblewrap.binds(
        view,
        workspace=spec.workspace,
        link_directory=places.link_directory,
        guest=places.guest,
        accounts=places.accounts,
    )
    stage: list[str] = []
    if record.user is not None:
        stage = [program, bubblewrap.libraries(program), *(bind.source for bind in shown)]
        shown = [
            Bind(source=f"{launcher.STAGE}/{number}", target=bind.target, writable=bind.writable)
            for number, bind in enumerate(shown, start=2)
        ]
    words = bubblewrap.arguments(
        shown,
        [view.python, "-I", "-S", GUEST, spec.uid],
        env={**environment(view, home=WORKSPACE, temporary="/tmp"), **dict([mark(record)])},
        share_network=spec.network is Network.BRIDGE,
        own_proc=means is Means.BUBBLEWRAP,
        # Files in memory stay when their writer is killed: full, they must leave room for processes.
        temporary_size=spec.memory // 2 or DEFAULT_TEMPORARY_SIZE,
        shared_size=min(spec.memory // 8 or MAX_SHARED_SIZE, MAX_SHARED_SIZE),
    )
    return Launch(
        argv=[program, *words],
        env={},
        config=_config(record, means, f"{LINK_DIRECTORY}/{SOCKET}", _inner_confinement(means), grouped=grouped),
        bubblewrapped=True,
        user=record.user,
        stage=stage,
    )


def _inner_confinement(means: Means) -> dict[str, Any]:
    """A second wall, as far as the kernel has the stones for it: namespaces are the first."""
    wall: dict[str, Any] = {}
    if landlock.version():
        wall["landlock"] = {"read": ["/"], "write": [WORKSPACE, "/tmp", "/dev", "/proc"], "scope": True}
    if os.uname().machine in seccomp.ARCHITECTURES:
        wall |= {"seccomp": True, "sockets": list(_NEVER)}
    if wall and not means.contains_processes:
        wall["apart"] = True  # so that commands cannot signal the guest
    return wall


def _bare(record: EnvironmentRecord, means: Means, view: HostView, places: Places, *, grouped: bool) -> Launch:
    workspace = str(record.spec.workspace)
    env = {
        **environment(view, home=workspace, temporary=str(places.temporary)),
        "YAOSB_WORKSPACE": workspace,
        **dict([mark(record)]),
    }
    return Launch(
        argv=[view.python, "-I", "-S", str(places.guest), record.spec.uid],
        env=env,
        config=_config(
            record, means, str(places.socket), _bare_confinement(record, means, view, places), grouped=grouped
        ),
        user=record.user,
    )


def _bare_confinement(record: EnvironmentRecord, means: Means, view: HostView, places: Places) -> dict[str, Any]:
    if means is Means.PLAIN:
        return {}
    shown = [*SYSTEM, *SETTINGS, "/etc/passwd", "/etc/group", "/proc", *view.prefixes]
    devices = [f"/dev/{name}" for name in _DEVICES]
    # The loopback is the host's: no socket at all is the only way to keep from it.
    sockets = ["*"] if record.spec.network is Network.NONE else list(_NEVER_WITHOUT_NAMESPACES)
    return {
        "landlock": {
            "read": shown,
            "write": [str(record.spec.workspace), str(places.temporary), *devices],
            "scope": True,
        },
        "seccomp": True,
        "sockets": sockets,
        "apart": True,  # the guest dials Unix sockets, and signals into the confinement
    }


def _config(
    record: EnvironmentRecord, means: Means, socket: str, confinement: Mapping[str, Any], *, grouped: bool
) -> dict[str, Any]:
    limits: dict[str, int] = {}
    if not grouped:
        limits["data"] = record.spec.memory
        if counts_own_processes(record, means):
            limits["processes"] = record.spec.pids
    return {
        "socket": socket,
        "key": record.key,
        "workdir": working_directory(record, means),
        "cmd": list(record.spec.cmd),
        "env": dict(record.spec.env),
        "confinement": confinement,
        "limits": limits,
    }


def counts_own_processes(record: EnvironmentRecord, means: Means) -> bool:
    """Whether the kernel's limit on a user's processes counts this sandbox's alone: per user namespace, or own user."""
    return means.has_namespaces or record.user is not None
