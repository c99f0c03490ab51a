"""The store: one record a sandbox, written atomically; what it does not know it keeps. Blocking: for threads."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from yaosb_jupyter.core.names import is_uid, new_uid, path_of_owner
from yaosb_jupyter.errors import ProtocolError
from yaosb_jupyter.types import SandboxRecord

SCHEMA = 1

log = logging.getLogger(__name__)


class RecordStore:
    """``{data}/sandboxes/{uid}/record.json``, and links for people in ``{data}/by-owner/{owner}/{id}``."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self._sandboxes = data_dir / "sandboxes"
        self._by_owner = data_dir / "by-owner"
        # What each file held beyond the fields we know: a newer version's. Survives a rewrite.
        self._unknown: dict[str, dict[str, Any]] = {}

    def open(self) -> str:
        """Makes the directories; returns the data directory's own id, the same for ever."""
        for directory in (self.data_dir, self._sandboxes, self._by_owner):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.data_dir / "id"
        if not path.exists():
            write_atomically(path, new_uid().encode())
        return path.read_text(encoding="ascii").strip()

    def directory(self, uid: str) -> Path:
        return self._sandboxes / uid

    def prepare(self, record: SandboxRecord) -> None:
        """Makes the sandbox's record, then its own directories."""
        self.save(record)
        for name in ("workspace", "run"):
            (self.directory(record.uid) / name).mkdir(mode=0o755, exist_ok=True)
        self._link(record)

    def save(self, record: SandboxRecord) -> None:
        known = {"schema": SCHEMA, **msgspec.to_builtins(record)}
        content = _merge(self._unknown.get(record.uid, {}), known)
        data = json.dumps(content, indent=1, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")
        directory = self.directory(record.uid)
        directory.mkdir(mode=0o755, exist_ok=True)
        write_atomically(directory / "record.json", data)

    def load_all(self) -> list[SandboxRecord]:
        """All readable records; one that is not is set aside as ``record.json.broken`` and logged."""
        records = []
        for directory in sorted(self._sandboxes.iterdir()):
            path = directory / "record.json"
            if not is_uid(directory.name) or not path.exists():
                continue
            try:
                records.append(self._load(path, directory.name))
            except (ValueError, msgspec.ValidationError, ProtocolError) as error:
                log.warning("the record %s cannot be read and is set aside: %s", path, error)
                path.replace(path.with_suffix(".json.broken"))
        return records

    def sweep(self) -> None:
        """Removes directories that a crash left before their first record was written: nothing else is in them."""
        for directory in self._sandboxes.iterdir():
            if is_uid(directory.name) and not any(not entry.name.startswith(".") for entry in directory.iterdir()):
                shutil.rmtree(directory)

    def delete(self, uid: str, owner: str = "", id: str = "") -> None:
        """Forgets a sandbox with all its files. The record goes last, so that a crash between is seen again."""
        self._unknown.pop(uid, None)
        if owner and id:
            self._unlink(uid, owner, id)
        directory = self.directory(uid)
        if not directory.exists():
            return
        for entry in directory.iterdir():
            if entry.name != "record.json":
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        shutil.rmtree(directory)

    def _load(self, path: Path, uid: str) -> SandboxRecord:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or not isinstance(content.get("schema"), int):
            raise ProtocolError("it holds no schema")
        record = msgspec.convert(content, SandboxRecord)
        if record.uid != uid:
            raise ProtocolError(f"it is of {record.uid}")
        self._unknown[uid] = _unknown(content, {"schema": SCHEMA, **msgspec.to_builtins(record)})
        return record

    def _link(self, record: SandboxRecord) -> None:
        link = self._link_path(record.owner, record.id)
        link.parent.mkdir(mode=0o700, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(Path("..", "..", "sandboxes", record.uid))

    def _unlink(self, uid: str, owner: str, id: str) -> None:
        link = self._link_path(owner, id)
        if link.is_symlink() and link.readlink().name == uid:
            link.unlink()
            try:
                link.parent.rmdir()
            except OSError:
                pass  # the owner has other sandboxes

    def _link_path(self, owner: str, id: str) -> Path:
        return self._by_owner / path_of_owner(owner) / id


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces a file; readers see the old or the new content, also after a crash."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _unknown(content: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """What ``content`` holds and ``known`` does not, nested objects too."""
    rest = {}
    for key, value in content.items():
        if key not in known:
            rest[key] = value
        elif key == "options" and isinstance(value, dict):
            nested = _unknown(value, known[key])
            if nested:
                rest[key] = nested
    return rest


def _merge(unknown: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(known)
    for key, value in unknown.items():
        merged[key] = {**value, **merged[key]} if key in merged and isinstance(value, dict) else value
    return merged
