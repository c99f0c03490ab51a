"""What is kept of an environment on disk, out of its reach."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec
from yaosb_jupyter.tai.runtimes.embedded.handles import ProcessName


@dataclass(frozen=True, kw_only=True)
class EnvironmentRecord:
    """``key`` is the link's secret; ``user`` the uid and gid it runs as, None for the daemon's own.

    ``process``: the guest, or None before the first start. ``stopping``: its end was asked for by a call. ``reason``
    and ``exit_code`` tell of its last end.
    """

    schema: int = 1
    spec: EnvironmentSpec
    created_at: datetime
    key: str
    user: tuple[int, int] | None
    process: ProcessName | None = None
    stopping: bool = False
    reason: str = ""
    exit_code: int | None = None

    @property
    def runtime_id(self) -> str:
        return self.spec.uid


class RecordStore:
    """One file for each environment, in a directory that only the daemon's user can read. All calls block."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def open(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)

    def save(self, record: EnvironmentRecord) -> None:
        path = self.path(record.runtime_id)
        fresh = path.with_suffix(f".{secrets.token_hex(4)}.new")  # several may save at the same moment
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(msgspec.json.encode(record, enc_hook=_to_text))
        fresh.replace(path)

    def load_all(self) -> Sequence[EnvironmentRecord]:
        return [record for path in sorted(self._directory.glob("*.json")) if (record := _load(path)) is not None]

    def load(self, runtime_id: str) -> EnvironmentRecord | None:
        """None where it was removed."""
        return _load(self.path(runtime_id))

    def remove(self, runtime_id: str) -> None:
        for path in (self.path(runtime_id), self.log(runtime_id)):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()

    def log(self, runtime_id: str) -> Path:
        """Where the guest's own complaints go."""
        return self._directory / f"{runtime_id}.log"

    def path(self, runtime_id: str) -> Path:
        return self._directory / f"{runtime_id}.json"


def _load(path: Path) -> EnvironmentRecord | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=EnvironmentRecord, dec_hook=_from_text)
    except FileNotFoundError:
        return None  # removed meanwhile


def _to_text(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(type(value))


def _from_text(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError(kind)
