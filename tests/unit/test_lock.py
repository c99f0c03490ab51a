import os
import subprocess
import sys
from pathlib import Path

import pytest

from yaosb_jupyter.core.lock import (
    DataDirectoryLock,
    LockOwner,
    file_system_type,
    lock_owner,
    refuse_network_file_system,
)
from yaosb_jupyter.errors import DataDirectoryBusyError, NotAvailableError


def test_m18_the_second_owner_is_told_who_is_the_first(tmp_path: Path) -> None:
    lock = DataDirectoryLock(tmp_path)
    lock.acquire()
    assert lock_owner(tmp_path) == LockOwner.of_this_process()
    with pytest.raises(DataDirectoryBusyError, match=f"process {os.getpid()} owns.*YAO_DATA_DIR"):
        DataDirectoryLock(tmp_path).acquire()
    lock.release()
    lock.release()
    assert lock_owner(tmp_path) is None
    again = DataDirectoryLock(tmp_path)
    again.acquire()
    again.release()


def test_the_lock_ends_with_its_process(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from yaosb_jupyter.core.lock import DataDirectoryLock;"
        "lock = DataDirectoryLock(Path(sys.argv[1])); lock.acquire(); print(os.getpid(), flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = process.stdout.readline().strip()
        with pytest.raises(DataDirectoryBusyError, match=f"process {pid} owns"):
            DataDirectoryLock(tmp_path).acquire()
        process.kill()
        process.wait()
    again = DataDirectoryLock(tmp_path)
    again.acquire()
    again.release()


MOUNTS = """\
21 1 8:1 / / rw - ext4 /dev/sda1 rw
30 21 0:40 / {root}/home rw - nfs4 server:/home rw
31 30 8:2 / {root}/home/local rw - xfs /dev/sdb rw
32 21 0:41 / {root}/with\\040space rw - cifs //server/share rw
"""


def test_network_file_systems_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS.format(root=tmp_path))
    expected = {"home": "nfs4", "home/ann": "nfs4", "home/local/x": "xfs", "with space/x": "cifs", "other": "ext4"}
    for path, kind in expected.items():
        assert file_system_type(tmp_path / path, mounts) == kind, path
    monkeypatch.setattr("yaosb_jupyter.core.lock.file_system_type", lambda path: file_system_type(path, mounts))
    refuse_network_file_system(tmp_path / "other")
    with pytest.raises(NotAvailableError, match=r"nfs4.*YAO_DATA_DIR"):
        refuse_network_file_system(tmp_path / "home" / "ann")


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotAvailableError, match="YAO_DATA_DIR"):
        DataDirectoryLock(tmp_path / "file" / "data").acquire()
