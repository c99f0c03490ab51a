"""The files of an environment: who they belong to, and their removal. All calls block."""

from __future__ import annotations

import os

from yaosb_jupyter.guest.beneath import DIRECTORY
from yaosb_jupyter.guest.removal import remove_tree
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec
from yaosb_jupyter.tai.runtimes.embedded.users import give_user
from yaosb_jupyter.tai.runtimes.hostdirs import check_host_directory


def _owner(spec: EnvironmentSpec, uids: tuple[int, int]) -> tuple[int, int]:
    """The uid and gid that a root daemon runs the sandbox as.

    One of its own from the range; but the owner of a directory that somebody gave as the workspace, since only so are
    its files readable there and the new ones the owner's.
    """
    if spec.workspace.is_relative_to(spec.directory):
        uid = give_user(uids, spec.workspace)
        return uid, uid
    status = spec.workspace.stat()
    return status.st_uid, status.st_gid


def make_workspace(spec: EnvironmentSpec, uids: tuple[int, int]) -> tuple[int, int] | None:
    """Makes the directory where it is not there; who the sandbox runs as, None for the daemon's own user.

    Raises `InvalidOptionError` for a directory that no sandbox may have.
    """
    if not spec.workspace.is_relative_to(spec.directory):
        check_host_directory(spec.workspace, spec.name)
    spec.workspace.mkdir(parents=True, exist_ok=True)
    if os.geteuid() != 0:
        return None
    user = _owner(spec, uids)
    if spec.workspace.is_relative_to(spec.directory):
        os.chown(spec.workspace, *user)
    return user


def remove_workspace(spec: EnvironmentSpec) -> None:
    """Without following links, whatever rights its directories have. No-op when gone."""
    try:
        parent = os.open(spec.workspace.parent, DIRECTORY)
    except FileNotFoundError:
        return
    try:
        remove_tree(parent, spec.workspace.name)
    except FileNotFoundError:
        pass  # gone already
    finally:
        os.close(parent)
