"""Which directories of the host can be a workspace."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.tai.runtimes.hostdirs import check_host_directory


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Of an unprivileged user."""
    path = tmp_path / "mine"
    path.mkdir()
    if os.geteuid() == 0:
        os.chown(path, 1234, 1234)
    return path


@pytest.mark.parametrize("system", ["/", "/etc", "/run", "/var/run", "/usr/lib", "/var", "/proc/self", "/dev"])
def test_the_systems_directories_are_refused(system: str, directory: Path) -> None:
    link = directory / "link"
    link.symlink_to(system)
    for path in (Path(system), link):
        with pytest.raises(InvalidOptionError, match="is the system's"):
            check_host_directory(path, "lab")


def test_a_directory_with_a_socket_is_refused(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (directory / "deep" / "down").mkdir(parents=True)
    os.mkfifo(directory / "fifo")
    (directory / "deep" / "link").symlink_to("/nowhere")
    check_host_directory(directory, "lab")
    monkeypatch.chdir(directory / "deep" / "down")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("engine.sock")
        with pytest.raises(InvalidOptionError, match=r"holds a socket .*engine\.sock"):
            check_host_directory(directory, "lab")


def test_what_is_not_there_is_left_to_who_mounts_it(tmp_path: Path) -> None:
    check_host_directory(tmp_path / "missing", "lab")


def test_a_directory_of_roots_is_refused_to_a_root_daemon(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        check_host_directory(tmp_path, "lab")  # it is ours, and so is the sandbox's user
        return
    with pytest.raises(InvalidOptionError, match="belongs to root"):
        check_host_directory(tmp_path, "lab")
