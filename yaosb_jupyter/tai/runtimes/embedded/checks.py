"""What an embedded sandbox cannot be given is refused by name, before anything is made."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

from yaosb_jupyter.choices import Network
from yaosb_jupyter.errors import InvalidOptionError, NotAvailableError
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec
from yaosb_jupyter.tai.runtimes.embedded.bubblewrap import WORKSPACE
from yaosb_jupyter.tai.runtimes.embedded.host import EmbeddedHost
from yaosb_jupyter.tai.runtimes.embedded.options import Means
from yaosb_jupyter.tai.runtimes.embedded.view import SYSTEM, USER, USER_ID

_PLACES = (WORKSPACE, "/tmp", *SYSTEM)
_USE_DOCKER = "use a pool with a Docker engine"


def check_spec(spec: EnvironmentSpec, host: EmbeddedHost) -> None:
    """Raises `InvalidOptionError` naming the option."""
    if spec.gpus:
        raise InvalidOptionError("gpus cannot be given to an embedded sandbox", sandbox=spec.name, hint=_USE_DOCKER)
    if spec.ports:
        raise InvalidOptionError(
            "ports are not published by an embedded sandbox",
            sandbox=spec.name,
            hint="with network=bridge its servers listen on this host itself, without a mapping; else " + _USE_DOCKER,
        )
    if spec.network is Network.ALLOWLIST:
        raise InvalidOptionError(
            "network=allowlist is not yet offered by embedded", sandbox=spec.name, hint="accepted: none, bridge"
        )
    if not is_own_user(spec.user, host.means, None):
        raise InvalidOptionError(
            f"user={spec.user!r} is not there in an embedded sandbox", sandbox=spec.name, hint=f"accepted: {USER}"
        )
    if spec.cmd == ("image",):
        raise InvalidOptionError(
            "cmd=image needs an image, and an embedded sandbox has none", sandbox=spec.name, hint=_USE_DOCKER
        )
    if host.means.has_namespaces and not _can_have(PurePosixPath(spec.workdir)):
        raise InvalidOptionError(
            f"workdir={spec.workdir!r} is not there in an embedded sandbox",
            sandbox=spec.name,
            hint="accepted: a directory in /workspace or /tmp, which is made, or in " + ", ".join(SYSTEM),
        )
    socket = host.files.directory / spec.uid / "link.sock"
    if len(str(socket)) > 107:
        raise InvalidOptionError(
            f"the path {socket} is longer than a socket's may be (107)", hint="set YAO_RUNTIME_DIR to a shorter one"
        )


def _can_have(directory: PurePosixPath) -> bool:
    return directory == PurePosixPath("/") or any(directory.is_relative_to(place) for place in _PLACES)


def check_dial(spec: EnvironmentSpec, means: Means) -> None:
    """Raises `NotAvailableError` where no server can listen inside, and every port would be one of this host's."""
    if means is Means.LANDLOCK and spec.network is Network.NONE:
        raise NotAvailableError(
            "under Landlock without a network nothing inside can listen at a port",
            sandbox=spec.name,
            hint=f"create it with network=bridge, or {_USE_DOCKER}",
        )


def is_own_user(user: str, means: Means, outside: tuple[int, int] | None) -> bool:
    """Whether it names the one user that a sandbox has; ``outside``: who that is on the host, None for the daemon's."""
    if user in ("", USER):
        return True
    uid, gid = (USER_ID, USER_ID) if means.has_namespaces else outside or (os.geteuid(), os.getegid())
    return user in (str(uid), f"{uid}:{gid}")
