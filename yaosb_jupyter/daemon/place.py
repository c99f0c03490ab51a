"""Where the daemon of one data directory is found, and the secret that lets clients in. Blocking, for moments."""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from yaosb_jupyter.errors import AuthError, NotAvailableError
from yaosb_jupyter.settings import Settings

_SOCKET_PATH_LIMIT = 107


@dataclass(frozen=True, kw_only=True)
class Place:
    """The files of a daemon. Clients take the socket's path from the facts: their own environment may name another."""

    data_dir: Path
    runtime_dir: Path

    @classmethod
    def of(cls, settings: Settings) -> Self:
        return cls(data_dir=settings.data_dir, runtime_dir=settings.runtime_dir)

    @property
    def socket(self) -> Path:
        return self.runtime_dir / "daemon.sock"

    @property
    def secret(self) -> Path:
        return self.data_dir / "daemon.secret"

    @property
    def facts(self) -> Path:
        return self.data_dir / "daemon.json"

    @property
    def start_lock(self) -> Path:
        return self.data_dir / "daemon.start.lock"

    @property
    def log(self) -> Path:
        return self.data_dir / "daemon.log"


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a running daemon tells of itself; it may have ended since without taking them back.

    ``fingerprint`` of its settings; ``stays``: it does not end for want of use.
    """

    pid: int
    socket: str
    version: str
    fingerprint: Mapping[str, str] = field(default_factory=dict)
    stays: bool = False


def prepare(place: Place) -> None:
    """Makes the directories. Raises `NotAvailableError` where they cannot be used, or not safely."""
    for directory in (place.data_dir, place.runtime_dir):
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise NotAvailableError(
                f"the directory {directory} cannot be made: {error}", hint="choose another: YAO_DATA_DIR"
            ) from error
    _check_private(place.runtime_dir)
    if len(os.fsencode(place.socket)) > _SOCKET_PATH_LIMIT:
        raise NotAvailableError(
            f"the path {place.socket} is too long for a socket", hint="choose a shorter directory: YAO_RUNTIME_DIR"
        )


def _check_private(directory: Path) -> None:
    # Its parent may be a directory where everybody may make one of that name before us.
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise NotAvailableError(
            f"the directory {directory} belongs to somebody else", hint="choose another: YAO_RUNTIME_DIR"
        )
    if found.st_mode & 0o077:
        directory.chmod(0o700)


def write_facts(place: Place, facts: Facts) -> None:
    part = place.facts.with_suffix(".part")
    part.write_text(json.dumps(asdict(facts)), encoding="utf-8")
    part.replace(place.facts)


def read_facts(place: Place) -> Facts | None:
    """None where no daemon has told any."""
    try:
        return Facts(**json.loads(place.facts.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def make_secret(place: Place) -> str:
    """The secret of the data directory, made by its first daemon."""
    part = place.secret.with_suffix(f".{os.getpid()}")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(32))
    try:
        # A link, not a rename: a secret that is there already stays.
        os.link(part, place.secret)
    except FileExistsError:
        pass
    finally:
        part.unlink()
    secret = read_secret(place)
    if not secret:
        raise AuthError(f"the secret {place.secret} is empty", hint=f"remove it: rm {place.secret}")
    return secret


def read_secret(place: Place) -> str:
    """``""`` where there is none: no daemon has run yet. Raises `AuthError` where others could read it."""
    try:
        found = place.secret.stat()
        secret = place.secret.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise AuthError(
            f"the secret {place.secret} cannot be read: {error}", hint="is it your data directory?"
        ) from error
    if found.st_mode & 0o077:
        raise AuthError(f"the secret {place.secret} is readable by others", hint=f"remove it: rm {place.secret}")
    return secret
