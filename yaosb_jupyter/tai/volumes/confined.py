"""The file operations of one directory of this host, none of which leaves it. All block; see `local`.

Each operation resolves its path anew from a descriptor of the directory, and works on descriptors from there: what
is checked is what is used.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from yaosb_jupyter.errors import PathError
from yaosb_jupyter.tai.volumes.beneath import DIRECTORY, MAX_LINKS, entries, inside, open_beneath, read_link
from yaosb_jupyter.tai.volumes.paths import path_errors, split_path
from yaosb_jupyter.tai.volumes.tree import remove_tree
from yaosb_jupyter.types import WORKDIR, FileInfo

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW_FILE_MODE = 0o644
_NEW_DIRECTORY_MODE = 0o755


class ConfinedDirectory:
    """One directory. ``owner`` (uid, gid) of what is made in it, where we may say so; None: the directory's own owner.

    Raises `NotFoundError`, `PathError`, `UnavailableError`.
    """

    def __init__(self, directory: Path, *, owner: tuple[int, int] | None = None, sandbox: str = "") -> None:
        self._directory = directory
        self._owner = owner
        self._sandbox = sandbox
        self._mounts = (WORKDIR, str(directory))

    def open_file(self, path: str) -> tuple[int, int]:
        """A descriptor to read a regular file with, and its size."""
        with self._errors(path), self._root() as root:
            names = self._names(path)
            if not hasattr(os, "O_PATH"):
                return _regular(open_beneath(root, names, _READ, self._mounts))
            found, _ = _regular(open_beneath(root, names, os.O_PATH, self._mounts))
            try:  # opened for reading only now: opening a FIFO or a device can have effects
                return _regular(os.open(f"/proc/self/fd/{found}", _READ))
            finally:
                os.close(found)

    def stage(self, path: str, mode: int | None) -> StagedFile:
        """A new file beside ``path``, whose directories are made, to be put in its place by `StagedFile.commit`."""
        with self._errors(path), self._root() as root:
            with self._place(root, self._named(path), follow=True, parents=True) as (directory, name):
                kept = _replaceable_mode(directory, name)
                staged = StagedFile(os.dup(directory), name)
            try:
                os.fchmod(staged.fd, (_or(mode, _or(kept, _NEW_FILE_MODE))) & 0o777)
                self._give(root, staged.fd)
            except BaseException:
                staged.discard()
                raise
            return staged

    def commit(self, staged: StagedFile, path: str) -> FileInfo:
        """Puts a staged file in its place."""
        with self._errors(path):
            status = staged.commit()
        return _info(self._names(path), status, None)

    def stat(self, path: str) -> FileInfo:
        """Of the file itself, links not followed."""
        with self._errors(path), self._root() as root:
            names = self._names(path)
            if not names:
                return _info((), os.fstat(root), None)
            with self._place(root, names) as (directory, _):
                return _entry(directory, names)

    def list(self, path: str) -> list[FileInfo]:
        """A directory's entries, sorted by name."""
        with self._errors(path), self._root() as root:
            names = self._names(path)
            fd = open_beneath(root, names, os.O_RDONLY | os.O_DIRECTORY, self._mounts)
            try:
                return [info for name in sorted(entries(fd)) if (info := _present(fd, (*names, name)))]
            finally:
                os.close(fd)

    def mkdir(self, path: str) -> None:
        """Makes a directory and its parents."""
        with self._errors(path), self._root() as root:
            os.close(self._make(root, self._names(path)))

    def remove(self, path: str, *, recursive: bool) -> None:
        """Removes a file, a link or a directory."""
        with (
            self._errors(path),
            self._root() as root,
            self._place(root, self._named(path)) as (directory, name),
        ):
            if not stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode):
                os.unlink(name, dir_fd=directory)
            elif recursive:
                remove_tree(directory, name)
            else:
                os.rmdir(name, dir_fd=directory)

    def rename(self, source: str, target: str) -> None:
        """Moves within the directory."""
        with (
            self._errors(source),
            self._root() as root,
            self._place(root, self._named(source)) as (old_directory, old_name),
        ):
            os.lstat(old_name, dir_fd=old_directory)
            with self._errors(target), self._place(root, self._named(target)) as (new_directory, new_name):
                os.rename(old_name, new_name, src_dir_fd=old_directory, dst_dir_fd=new_directory)

    def _errors(self, path: str) -> AbstractContextManager[None]:
        return path_errors(path, self._sandbox)

    @contextmanager
    def _root(self) -> Iterator[int]:
        fd = os.open(self._directory, DIRECTORY)
        try:
            yield fd
        finally:
            os.close(fd)

    def _names(self, path: str) -> tuple[str, ...]:
        return split_path(path, self._mounts)

    def _named(self, path: str) -> tuple[str, ...]:
        names = self._names(path)
        if not names:
            raise PathError(f"{path!r} is the workspace itself", hint="name a file in it")
        return names

    @contextmanager
    def _place(
        self, root: int, names: Sequence[str], *, follow: bool = False, parents: bool = False
    ) -> Iterator[tuple[int, str]]:
        """The directory that ``names`` lead to, and the last name in it; ``follow`` a link there to where it points."""
        for _ in range(MAX_LINKS):
            above, name = tuple(names[:-1]), names[-1]
            if name in ("", ".", ".."):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            directory = self._make(root, above) if parents else open_beneath(root, above, DIRECTORY, self._mounts)
            try:
                target = read_link(directory, name) if follow else None
                if target is None:
                    yield directory, name
                    return
            finally:
                os.close(directory)
            names = self._link_names(above, target)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def _link_names(self, above: tuple[str, ...], target: str) -> tuple[str, ...]:
        """Where a link leads, ``..`` kept: it counts from the real directory."""
        if target.startswith("/"):
            return tuple(inside(target, self._mounts).split("/"))
        return (*above, *target.rstrip("/").split("/"))

    def _make(self, root: int, names: Sequence[str]) -> int:
        """A descriptor of a directory, made step by step where it is missing."""
        try:
            return open_beneath(root, names, DIRECTORY, self._mounts)
        except FileNotFoundError:
            if not names:
                raise
        directory = self._make(root, names[:-1])
        try:
            self._make_one(root, directory, names[-1])
            return os.open(names[-1], DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
        finally:
            os.close(directory)

    def _make_one(self, root: int, directory: int, name: str) -> None:
        try:
            os.mkdir(name, _NEW_DIRECTORY_MODE, dir_fd=directory)
        except FileExistsError:
            return  # made by another meanwhile, or a link to nowhere, which the next open refuses
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            os.fchmod(fd, _NEW_DIRECTORY_MODE)  # whatever our umask
            self._give(root, fd)
        finally:
            os.close(fd)

    def _give(self, root: int, fd: int) -> None:
        """Gives what we made to the sandbox's user. Only root can; else it is ours, and so is the sandbox's user."""
        if os.geteuid() == 0:
            status = os.fstat(root)
            uid, gid = self._owner or (status.st_uid, status.st_gid)
            os.fchown(fd, uid, gid)


class StagedFile:
    """A file being written under a name of its own, in the directory it is for."""

    def __init__(self, directory: int, name: str) -> None:
        self._directory = directory
        self._name = name
        self._temporary = f".yaosb-{secrets.token_hex(8)}.part"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self.fd = os.open(self._temporary, flags, 0o600, dir_fd=directory)
        except BaseException:
            os.close(directory)
            raise

    def write(self, data: bytes | memoryview) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.fd, rest) :]

    def commit(self) -> os.stat_result:
        """Takes the name; the file is whole from the first moment it is seen there."""
        os.rename(self._temporary, self._name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        self._temporary = ""
        status = os.fstat(self.fd)
        self.discard()
        return status

    def discard(self) -> None:
        """Lets go, removing what was not committed. Idempotent."""
        if self.fd < 0:
            return
        try:
            if self._temporary:
                os.unlink(self._temporary, dir_fd=self._directory)
        except FileNotFoundError:
            pass  # the sandbox removed it
        finally:
            os.close(self.fd)
            os.close(self._directory)
            self.fd = -1


def _regular(fd: int) -> tuple[int, int]:
    """The descriptor and the size, if it is a regular file's."""
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode):
        return fd, status.st_size
    os.close(fd)
    code = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.ENXIO
    raise OSError(code, os.strerror(code))


def _replaceable_mode(directory: int, name: str) -> int | None:
    """The permissions of the file that is to be replaced; None where there is none."""
    try:
        mode = os.lstat(name, dir_fd=directory).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(mode):
        return stat.S_IMODE(mode)
    code = errno.EISDIR if stat.S_ISDIR(mode) else errno.ENXIO
    raise OSError(code, os.strerror(code))


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _present(directory: int, names: tuple[str, ...]) -> FileInfo | None:
    try:
        return _entry(directory, names)
    except FileNotFoundError:
        return None  # removed since the directory was read


def _entry(directory: int, names: tuple[str, ...]) -> FileInfo:
    status = os.lstat(names[-1], dir_fd=directory)
    target = read_link(directory, names[-1]) if stat.S_ISLNK(status.st_mode) else None
    return _info(names, status, target)


def _info(names: tuple[str, ...], status: os.stat_result, target: str | None) -> FileInfo:
    return FileInfo(
        name=names[-1] if names else "",
        path="/".join(names),
        size=status.st_size,
        mode=status.st_mode,
        mtime=status.st_mtime,
        is_dir=stat.S_ISDIR(status.st_mode),
        link_target=target,
    )
