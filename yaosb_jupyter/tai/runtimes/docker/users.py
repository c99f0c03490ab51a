"""Who runs in a container: pure rules over the image's passwd file and the ids in use."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from yaosb_jupyter.errors import InvalidOptionError, LimitExceededError
from yaosb_jupyter.tai.runtimes.docker.options import UidRange

USER_NAME = "sandbox"
HOME = f"/home/{USER_NAME}"


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A numeric user; ``known`` if the image's passwd has it already."""

    uid: int
    gid: int
    known: bool = False

    @property
    def is_root(self) -> bool:
        return self.uid == 0


def allocate(sandbox_uid: str, ids: UidRange, taken: Collection[int]) -> int:
    """A user id that no other sandbox has; the same for the same sandbox wherever that is free."""
    size = ids.last - ids.first + 1
    start = int.from_bytes(hashlib.sha256(sandbox_uid.encode()).digest()[:8], "big") % size
    for step in range(size):
        candidate = ids.first + (start + step) % size
        if candidate not in taken:
            return candidate
    raise LimitExceededError(f"all {size} user ids of uid_range are in use", hint="widen the pool option uid_range")


def named_identity(user: str, passwd: str, group: str) -> Identity:
    """The user that people named: a name or number of the image's, with ``:GROUP`` if they like.

    Raises `InvalidOptionError` for a name that the image does not have.
    """
    name, _, group_name = user.partition(":")
    uid, gid, known = _find_user(name, passwd)
    if group_name:
        gid = _find_group(group_name, group)
    return Identity(uid=uid, gid=gid, known=known)


def is_known(uid: int, passwd: str) -> bool:
    return any(fields[2:3] == [str(uid)] for fields in _rows(passwd))


def _find_user(name: str, passwd: str) -> tuple[int, int, bool]:
    if name in ("root", "0"):
        return 0, 0, True
    for fields in _rows(passwd):
        if len(fields) >= 4 and name in (fields[0], fields[2]) and fields[2].isdigit() and fields[3].isdigit():
            return int(fields[2]), int(fields[3]), True
    if name.isdigit() and int(name) < 2**31:
        return int(name), int(name), False
    raise InvalidOptionError(
        f"user={name!r} is not a user of the image", hint="accepted: a name of its passwd, or a number"
    )


def _find_group(name: str, group: str) -> int:
    for fields in _rows(group):
        if len(fields) >= 3 and name in (fields[0], fields[2]) and fields[2].isdigit():
            return int(fields[2])
    if name.isdigit() and int(name) < 2**31:
        return int(name)
    raise InvalidOptionError(
        f"user: {name!r} is not a group of the image", hint="accepted: a name of its group file, or a number"
    )


def _rows(text: str) -> list[list[str]]:
    return [line.split(":") for line in text.splitlines()]


def account_archive(
    identity: Identity,
    passwd: str,
    group: str,
    *,
    workspace: str = "",
    files: Mapping[str, bytes] | None = None,
    programs: Mapping[str, bytes] | None = None,
) -> bytes:
    """A tar for the container's root: a passwd entry, a home, ``files`` of the user's own, ``programs`` that are root's
    and readable, and (as a volume's root) ``workspace``.

    Empty where nothing is needed.
    """
    buffer = io.BytesIO()
    empty = True
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        if not identity.known:
            user_line = f"{USER_NAME}:x:{identity.uid}:{identity.gid}:sandbox:{HOME}:/bin/sh\n"
            _add(tar, "etc/passwd", _others(passwd) + user_line)
            _add(tar, "etc/group", _others(group) + f"{USER_NAME}:x:{identity.gid}:\n")
            _add(tar, "home", None)
            _add(tar, HOME.strip("/"), None, owner=identity, mode=0o700)
            empty = False
        if workspace:
            _add(tar, workspace.strip("/"), None, owner=identity)
            empty = False
        for path, content in (files or {}).items():
            _add(tar, path.strip("/"), content, owner=identity, mode=0o600)
            empty = False
        for path, content in (programs or {}).items():
            _add(tar, path.strip("/"), content)
            empty = False
    return b"" if empty else buffer.getvalue()


def program_archive(programs: Mapping[str, bytes]) -> bytes:
    """A tar of files that are root's and readable for all."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, content in programs.items():
            _add(tar, path.strip("/"), content)
    return buffer.getvalue()


def _others(text: str) -> str:
    """The rows of a passwd or group file without the one of our user's name, which our own images have."""
    return "".join(f"{line}\n" for line in text.splitlines() if line.partition(":")[0] != USER_NAME)


def _add(
    tar: tarfile.TarFile, name: str, content: str | bytes | None, *, owner: Identity | None = None, mode: int = 0
) -> None:
    data = content.encode() if isinstance(content, str) else content or b""
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
    entry.mode = mode or (0o755 if content is None else 0o644)
    if owner is not None:
        entry.uid, entry.gid = owner.uid, owner.gid
    tar.addfile(entry, io.BytesIO(data))
