"""What one container is kept from: what holds on its engine, with what its own options change. Pure."""

from __future__ import annotations

from dataclasses import replace

from yaosb_jupyter.choices import Network
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec
from yaosb_jupyter.tai.runtimes.docker.spec import own_workspace
from yaosb_jupyter.types import Isolation


def isolation_of(common: Isolation, spec: EnvironmentSpec, *, uid: int, container: str, inner_root: bool) -> Isolation:
    """``common``: of a sandbox without options, ``uid`` what this one runs as, ``container`` the name of the means.

    ``inner_root``: the engine maps root to an unprivileged user of the host.
    """
    told = common
    if user := _user(spec, uid, inner_root=inner_root):
        told = replace(told, means=f"{container}, {user}")
    if not own_workspace(spec):
        told = replace(
            told,
            files=f"sees its image and {spec.workspace} of this host only, which it can change",
            metadata="cannot see or change the host's files, but for its workspace",
            unix_sockets="none of the host's, but for any that come to lie in its workspace",
        )
    if spec.network is Network.NONE:
        told = replace(told, internet="none", host="none", lan="none", other_sandboxes="not reachable")
    return told


def _user(spec: EnvironmentSpec, uid: int, *, inner_root: bool) -> str:
    """Empty for the one that a sandbox gets by itself."""
    if uid == 0 and not inner_root:
        return "as ROOT, with its rights over all files that it sees"
    if spec.user:
        return f"as user {spec.user} (uid {uid}), without privileges"
    return "" if own_workspace(spec) else f"as uid {uid}, the owner of its workspace or yours, without privileges"
