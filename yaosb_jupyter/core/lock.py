"""One manager for each data directory."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from yaosb_jupyter.errors import DataDirectoryBusyError, NotAvailableError

LOCK_NAME = "manager.lock"

# File systems of another machine, where a lock holds for that machine only, or not at all.
_NETWORK = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "smb3", "smbfs"}
)
_NETWORK_FUSE = frozenset({"fuse.gcsfuse", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs"})


@dataclass(frozen=True, kw_only=True)
class LockOwner:
    """Who holds the lock: a pid means something only on its host and within its boot."""

    pid: int
    host: str
    boot_id: str

    @classmethod
    def of_this_process(cls) -> Self:
        return cls(pid=os.getpid(), host=socket.gethostname(), boot_id=_boot_id())

    def is_elsewhere(self) -> bool:
        return self.host != socket.gethostname()


class DataDirectoryLock:
    """Held from `acquire` to `release`, or to the end of the process. Both block for a moment: for threads."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._descriptor = -1

    def acquire(self) -> None:
        """Raises `DataDirectoryBusyError` naming the owner, `NotAvailableError` on a network file system."""
        try:
            self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            refuse_network_file_system(self._data_dir)
            descriptor = os.open(self._data_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise NotAvailableError(
                f"the data directory {self._data_dir} cannot be used: {error}", hint="choose another one: YAO_DATA_DIR"
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise _busy(self._data_dir, lock_owner(self._data_dir)) from None
        self._descriptor = descriptor
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(LockOwner.of_this_process())).encode(), 0)

    def release(self) -> None:
        """Idempotent. The file stays: removing it would let two owners hold two files of one name."""
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1


def lock_owner(data_dir: Path) -> LockOwner | None:
    """Who wrote itself into the lock file last; None where nobody did. The lock may be free all the same."""
    try:
        return LockOwner(**json.loads((data_dir / LOCK_NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def refuse_network_file_system(path: Path) -> None:
    """Raises `NotAvailableError` where ``path`` lies on a file system whose locks do not hold between machines."""
    kind = file_system_type(path)
    if kind in _NETWORK | _NETWORK_FUSE:
        raise NotAvailableError(
            f"the data directory {path} is on a network file system ({kind}), where two managers could own it",
            hint="choose a directory on a local disk: YAO_DATA_DIR",
        )


def file_system_type(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """The type of the file system that holds ``path``, ``""`` where the system does not tell."""
    real = path.resolve()
    best, kind = -1, ""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    for line in lines:
        left, _, right = line.partition(" - ")
        point = Path(left.split()[4].encode().decode("unicode_escape"))
        if real.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), right.split()[0]
    return kind


def _busy(data_dir: Path, owner: LockOwner | None) -> DataDirectoryBusyError:
    if owner is None:
        return DataDirectoryBusyError(
            f"another manager owns the data directory {data_dir}", hint="try again in a moment, or set YAO_DATA_DIR"
        )
    where = f" on {owner.host}" if owner.is_elsewhere() else ""
    return DataDirectoryBusyError(
        f"process {owner.pid}{where} owns the data directory {data_dir}",
        hint="use it through yaosb_jupyter.connect(), end that process, or choose another directory: YAO_DATA_DIR",
    )


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
