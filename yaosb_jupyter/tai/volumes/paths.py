"""Workspace paths as people write them, and the system's errors about them as ours."""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from yaosb_jupyter.errors import (
    PathError,
    PathExistsError,
    PathIsDirectoryError,
    PathLinkError,
    PathNotDirectoryError,
    PathNotFoundError,
    SandboxError,
    UnavailableError,
)
from yaosb_jupyter.guest.confined import Entry
from yaosb_jupyter.guest.records import MAX_NAME, RecordError
from yaosb_jupyter.guest.walk import TreeError
from yaosb_jupyter.types import WORKDIR, FileInfo

_MAX_NAMES = 256
_OUTSIDE = "leads out of the workspace"
_MESSAGES = {
    errno.EXDEV: _OUTSIDE,
    errno.ELOOP: "goes through too many links",
    errno.ENOTDIR: "is not a directory, or lies below a file",
    errno.EISDIR: "is a directory",
    errno.EEXIST: "exists already",
    errno.ENAMETOOLONG: "is too long",
    errno.EINVAL: "cannot be used for this",
    errno.EBUSY: "is in use",
    errno.EAGAIN: "was changed while it was looked at",
    errno.ENXIO: "is neither a file nor a directory",
    errno.EACCES: "may not be accessed",
    errno.EPERM: "may not be accessed",
}
_KINDS: Mapping[int | None, type[PathError]] = {
    errno.EXDEV: PathLinkError,
    errno.ELOOP: PathLinkError,
    errno.ENOTDIR: PathNotDirectoryError,
    errno.EISDIR: PathIsDirectoryError,
    errno.EEXIST: PathExistsError,
}


def split_path(path: str, mounts: Sequence[str] = (WORKDIR,)) -> tuple[str, ...]:
    """The names on a workspace path, ``()`` for the workspace itself.

    Absolute paths are accepted below one of ``mounts``. Raises `PathError` for one that leads out.
    """
    if "\0" in path:
        raise PathError(f"{path!r} holds a NUL character")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise PathError(f"{path!r} cannot be a file name") from None
    plain = posixpath.normpath(path) if path else "."
    if plain.startswith("/"):
        plain = _below(plain, mounts)
    names = tuple(name for name in plain.split("/") if name not in ("", "."))
    if names[:1] == ("..",):
        raise PathError(f"{path!r} {_OUTSIDE}", hint=f"accepted: paths below {mounts[0]}")
    if any(len(os.fsencode(name)) > MAX_NAME for name in names):
        raise PathError(f"{path[:60]!r}... is too long", hint=f"accepted: names of up to {MAX_NAME} bytes")
    if len(names) > _MAX_NAMES:
        raise too_deep(path, _MAX_NAMES)
    return names


def too_deep(path: str, most: int) -> PathError:
    return PathError(f"{path[:60]!r}... is too deep", hint=f"accepted: up to {most} names")


def split_named(path: str, mounts: Sequence[str] = (WORKDIR,)) -> tuple[str, ...]:
    """`split_path`; raises `PathError` for the workspace itself too."""
    names = split_path(path, mounts)
    if not names:
        raise PathError(f"{path!r} is the workspace itself", hint="name a file in it")
    return names


def _below(path: str, mounts: Sequence[str]) -> str:
    for mount in mounts:
        if path == mount or path.startswith(mount + "/"):
            return path[len(mount) + 1 :]
    raise PathError(f"{path!r} {_OUTSIDE}", hint=f"accepted: paths below {mounts[0]}, or relative ones")


def file_info(names: Sequence[str], entry: Entry) -> FileInfo:
    """What is told of the file at a path."""
    return FileInfo(
        name=names[-1] if names else "",
        path="/".join(names),
        size=entry.size,
        mode=entry.mode,
        mtime=entry.mtime,
        is_dir=stat.S_ISDIR(entry.mode),
        link_target=entry.target,
    )


@contextmanager
def path_errors(path: str, sandbox: str = "") -> Iterator[None]:
    """Makes the `OSError` of a file operation one of ours, naming the path as it was given."""
    try:
        yield
    except SandboxError as error:  # some are an OSError too
        error.sandbox = error.sandbox or sandbox or None
        raise
    except TreeError as error:
        raise path_error(error.errno, posixpath.join(path, error.filename or ""), sandbox) from error
    except OSError as error:
        raise path_error(error.errno, path, sandbox) from error
    except RecordError as error:
        raise PathError(f"{path!r}: what came is no tree of files: {error}", sandbox=sandbox or None) from error


def path_error(number: int | None, path: str, sandbox: str = "") -> SandboxError:
    """The error for an errno."""
    where = sandbox or None
    if number == errno.ENOENT:
        return PathNotFoundError(
            f"no such file: {path!r}", sandbox=where, hint="list the directory to see what is there"
        )
    if number == errno.ENOTEMPTY:
        return PathError(f"{path!r} is not empty", sandbox=where, hint="remove it recursively")
    if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return UnavailableError(
            f"no room is left to write {path!r}: {os.strerror(number)}",
            sandbox=where,
            hint="what was written before is whole, this file is as it was; make room, and repeat it",
        )
    if number in _MESSAGES:
        return _KINDS.get(number, PathError)(f"{path!r} {_MESSAGES[number]}", sandbox=where)
    reason = "it failed" if number is None else os.strerror(number)
    return UnavailableError(f"{path!r}: {reason}", sandbox=where, hint="the host's file system says so")
