"""A stream of records as files below one place, whoever sent it."""

from __future__ import annotations

import errno
import os
from typing import Iterator, List, Optional, Protocol, Set

from . import records
from .confined import READ_DIRECTORY, ConfinedDirectory, Names
from .frames import Buffer
from .packing import MOST_TOLD
from .staging import StagedFile
from .walk import TreeError


class Destination(Protocol):
    """Where a tree goes: its top becomes a directory or a file there. All raise `OSError`."""

    def directory(self) -> int:
        """A descriptor of the directory, made where it is missing."""

    def file(self, mode: int) -> StagedFile:
        """The file, to be written."""

    def give(self, fd: int) -> None:
        """Gives what was made below to whom it is for."""

    def make_one(self, directory: int, name: str, mode: int) -> None:
        """Makes one directory in another; no-op where there is something of that name."""


class Level:
    """A directory that is being filled, and what came into it: a second of the same name is refused.

    What came is known by inode, since on some systems names that differ are the same.
    """

    def __init__(self, fd: int, path: str) -> None:
        self.fd = fd
        self.path = path
        self.came: Set[int] = set()


class Unpacker:
    """Takes a stream of records; nothing it makes is outside of ``destination``, and no link is followed.

    Directories that are there are filled, files replaced. It counts while it goes: ``files``, ``done`` bytes of
    ``total``, ``path`` where it is, ``skipped`` paths that were left out. To be closed.
    """

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._decoder = records.Decoder()
        self._levels: List[Level] = []
        self._staged: Optional[StagedFile] = None
        self._begun = False
        self._ended = False
        self.path = ""
        self.files = 0
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
        """Lets go; a file that is not whole is removed. Idempotent."""
        if self._staged is not None:
            self._staged.discard()
            self._staged = None
        while self._levels:
            os.close(self._levels.pop().fd)

    def _do(self, record: records.Record) -> None:
        kind, name, mode, content = record
        if kind == records.MORE:
            self._more(content)
            return
        self._complete()
        if kind == records.TOTAL:
            self.total = records.decode_total(content)
        elif kind == records.END:
            if self._levels or not self._begun:
                raise records.RecordError("an end in the middle")
            self._ended = True
        elif kind == records.LEAVE:
            if not self._levels:
                raise records.RecordError("a directory is left that was not entered")
            os.close(self._levels.pop().fd)
        else:
            self._place(name)
            if kind == records.ENTER:
                self._enter(name, mode)
            elif kind == records.FILE:
                self._begin(name, mode)
                self._more(content)
            elif len(self.skipped) < MOST_TOLD:
                self.skipped.append(self.path)

    def _place(self, name: str) -> None:
        """The top, and only it, has no name."""
        if bool(name) != bool(self._levels) or (not self._levels and self._begun):
            raise records.RecordError("%r where it cannot be" % name)
        self._begun = True
        above = self._levels[-1].path if self._levels else ""
        self.path = "%s/%s" % (above, name) if above else name

    def _enter(self, name: str, mode: int) -> None:
        if not self._levels:
            self._levels.append(Level(self._destination.directory(), ""))
            return
        if len(self._levels) >= records.MAX_DEPTH:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        level = self._levels[-1]
        self._destination.make_one(level.fd, name, mode | 0o700)
        fd = os.open(name, READ_DIRECTORY | os.O_NOFOLLOW, dir_fd=level.fd)
        self._levels.append(Level(fd, self.path))
        _note(level, os.fstat(fd).st_ino)

    def _begin(self, name: str, mode: int) -> None:
        if not self._levels:
            self._staged = self._destination.file(mode)
            return
        level = self._levels[-1]
        self._staged = StagedFile(os.dup(level.fd), name, mode)
        self._destination.give(self._staged.fd)

    def _more(self, content: Buffer) -> None:
        if self._staged is None:
            raise records.RecordError("content of no file")
        self._staged.write(content)
        self.done += len(content)

    def _complete(self) -> None:
        if self._staged is None:
            return
        if self._levels:
            level = self._levels[-1]
            _refuse_second(level, self._staged.name)
            _note(level, self._staged.inode)
        self._staged.commit()
        self._staged = None
        self.files += 1


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

    def __init__(self, confined: ConfinedDirectory, names: Names) -> None:
        self._confined = confined
        self._names = names
        self.give = confined.give
        self.make_one = confined.make_one

    def directory(self) -> int:
        return self._confined.make_directory(self._names)

    def file(self, mode: int) -> StagedFile:
        return self._confined.stage(self._names, mode)
