"""A stream of records as files below one place, whoever sent it."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import Iterator, List, NamedTuple, Optional, Protocol, Set

from . import records
from .confined import READ_DIRECTORY, ConfinedDirectory, Names
from .frames import Buffer
from .packing import MOST_TOLD
from .staging import StagedDirectory, StagedFile
from .walk import TreeError


class Destination(Protocol):
    """Where a tree goes: its top becomes a directory or a file there. All raise `OSError`.

    ``exact``: whether directories get the modes that are told whatever our umask.
    """

    exact: bool

    def directory(self) -> int:
        """A descriptor of the directory that is there."""

    def new_directory(self, mode: int) -> StagedDirectory:
        """One that is not there yet; what is above it is made where it is missing."""

    def file(self, mode: int) -> StagedFile:
        """The file, to be written."""

    def give(self, fd: int, status: os.stat_result) -> None:
        """Gives what was made below to whom it is for."""


class Level(NamedTuple):
    """A directory that is being filled, and what came into it: a second of the same name is refused.

    What came is known by inode, since on some systems names that differ are the same. A ``fresh`` one is not to be
    found under its name yet, so what comes into it can have its own at once; ``staged`` is the topmost of such.
    """

    fd: int
    path: str
    came: Set[int]
    fresh: bool
    staged: Optional[StagedDirectory]

    def leave(self) -> None:
        if self.staged is None:
            os.close(self.fd)
        else:
            self.staged.commit()


class Unpacker:
    """Takes a stream of records; nothing it makes is outside of ``destination``, and no link is followed.

    Directories that are there are filled, files replaced; a new directory is seen when it is whole. It counts while it
    goes: ``files``, ``entries`` of all kinds (``coming`` are told, if any), ``done`` bytes of ``total``, ``path`` where
    it is, ``skipped`` paths that were left out. To be closed.
    """

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._decoder = records.Decoder()
        self._levels: List[Level] = []
        self._staged: Optional[StagedFile] = None
        self._mtime = 0
        self._begun = False
        self._ended = False
        self.path = ""
        self.files = 0
        self.entries = 0
        self.coming = 0
        self.done = 0
        self.total = 0
        self.skipped: List[str] = []

    def feed(self, data: Buffer) -> Iterator[None]:
        """Does what ``data`` says, a record a step; to be exhausted. Raises `RecordError`, `TreeError`."""
        for record in self._decoder.feed(data):
            if self._ended:
                raise records.RecordError("something after the end")
            try:
                self._do(record)
            except OSError as error:
                raise TreeError.of(error, self.path) from error
            yield

    def finish(self) -> None:
        """Raises `RecordError` where the stream was not whole."""
        if not self._ended:
            raise records.RecordError("no end")

    def close(self) -> None:
        """Lets go; a file that is not whole is removed, those that are stay. Idempotent."""
        if self._staged is not None:
            self._staged.discard()
            self._staged = None
        while self._levels:
            with suppress(OSError):  # what went wrong first is told
                self._levels.pop().leave()

    def _do(self, record: records.Record) -> None:
        kind, name, mode, mtime, content = record
        if kind == records.MORE:
            self._more(content)
            return
        self._complete()
        if kind == records.TOTAL:
            self.total, self.coming = records.decode_total(content), mtime
        elif kind == records.END:
            if self._levels or not self._begun:
                raise records.RecordError("an end in the middle")
            self._ended = True
        elif kind == records.LEAVE:
            if not self._levels:
                raise records.RecordError("a directory is left that was not entered")
            self.path = self._levels[-1].path
            self._levels.pop().leave()
        else:
            self._place(name)
            if kind == records.ENTER:
                self._enter(name, mode)
            elif kind == records.FILE:
                self._begin(name, mode)
                self._mtime = mtime
                self._more(content)
            elif kind != records.SKIP:
                raise records.RecordError("a record of kind %d" % kind)
            elif len(self.skipped) < MOST_TOLD:
                self.skipped.append(self.path)

    def _place(self, name: str) -> None:
        """The top, and only it, has no name."""
        if bool(name) != bool(self._levels) or (not self._levels and self._begun):
            raise records.RecordError("%r where it cannot be" % name)
        self._begun = True
        self.entries += 1
        above = self._levels[-1].path if self._levels else ""
        self.path = "%s/%s" % (above, name) if above else name

    def _enter(self, name: str, mode: int) -> None:
        if len(self._levels) >= records.MAX_DEPTH:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        above = self._levels[-1] if self._levels else None
        staged = None
        fresh = True
        mode |= 0o700  # we have to fill it
        if above is not None and above.fresh:
            os.mkdir(name, mode, dir_fd=above.fd)
            fd = _open(above, name)
        else:
            try:
                fd = _open(above, name) if above else self._destination.directory()
                fresh = False
            except FileNotFoundError:
                staged = (
                    StagedDirectory(os.dup(above.fd), name, mode) if above else self._destination.new_directory(mode)
                )
                fd = staged.fd
        self._levels.append(Level(fd, self.path, set(), fresh, staged))
        status = os.fstat(fd)
        if above:
            _note(above, status.st_ino)
        if fresh:
            if self._destination.exact:
                os.fchmod(fd, mode)
            self._destination.give(fd, status)

    def _begin(self, name: str, mode: int) -> None:
        if not self._levels:
            self._staged = self._destination.file(mode)
            return
        level = self._levels[-1]
        self._staged = StagedFile(level.fd, name, mode, owned=False, fresh=level.fresh)
        self._destination.give(self._staged.fd, self._staged.status)

    def _more(self, content: Buffer) -> None:
        if self._staged is None:
            raise records.RecordError("content of no file")
        self._staged.write(content)
        self.done += len(content)

    def _complete(self) -> None:
        if self._staged is None:
            return
        if self._levels and not self._levels[-1].fresh:
            level = self._levels[-1]
            _refuse_second(level, self._staged.name)
            _note(level, self._staged.status.st_ino)
        os.utime(self._staged.fd, ns=(self._mtime, self._mtime))
        self._staged.take_name()
        self._staged = None
        self.files += 1


def _open(level: Level, name: str) -> int:
    return os.open(name, READ_DIRECTORY | os.O_NOFOLLOW, dir_fd=level.fd)


def _refuse_second(level: Level, name: str) -> None:
    try:
        there = os.lstat(name, dir_fd=level.fd).st_ino
    except FileNotFoundError:
        return
    if there in level.came:
        raise _clash()


def _note(level: Level, inode: int) -> None:
    if inode in level.came:
        raise _clash()
    level.came.add(inode)


def _clash() -> OSError:
    return OSError(errno.EEXIST, os.strerror(errno.EEXIST))


class Within:
    """The destination ``names`` in a confined directory."""

    exact = True

    def __init__(self, confined: ConfinedDirectory, names: Names) -> None:
        self._confined = confined
        self._names = names
        self.give = confined.give

    def directory(self) -> int:
        return self._confined.open_directory(self._names)

    def new_directory(self, mode: int) -> StagedDirectory:
        return self._confined.stage_directory(self._names, mode)

    def file(self, mode: int) -> StagedFile:
        return self._confined.stage(self._names, mode)
