"""A tree as the engine's archive tells it, in one request: the records of its manifest, and those of its contents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from datetime import datetime
from hashlib import sha256
from typing import Any, cast

from yaosb_jupyter.errors import ProtocolError
from yaosb_jupyter.guest import records
from yaosb_jupyter.guest.manifest import Stamp, encode_stamp
from yaosb_jupyter.tai.runtimes.docker.tarstream import TarEntry, TarReader

SECOND = 10**9
ReadAgain = Callable[[str], AsyncIterator[bytes]]


class ArchivedTree:
    """``times``: the files' own, in nanoseconds, since archives tell whole seconds. ``again`` reads what is not told a
    second time, a hard link's content. Both go by the path below the top."""

    def __init__(self, tar: TarReader, times: Mapping[str, int], again: ReadAgain) -> None:
        self._tar = tar
        self._times = times
        self._again = again
        self._inside: list[str] = []

    async def manifest(self) -> AsyncIterator[bytes]:
        """Always with digests, since times may be missing."""
        async for entry, name in self._entries():
            if entry is None:
                yield records.encode(records.LEAVE)
            elif entry.is_file or entry.is_hard_link:
                size, digest = 0, sha256()
                async for piece in self._content(entry, name):
                    size += len(piece)
                    digest.update(piece)
                yield encode_stamp(name, self._stamp(entry, name)._replace(size=size, digest=digest.digest()))
            elif entry.is_directory:
                yield records.encode(records.ENTER, name)

    async def packed(self, there: Mapping[str, Stamp]) -> AsyncIterator[bytes]:
        """Without the files that are as ``there`` tells."""
        async for entry, name in self._entries():
            if entry is None:
                yield records.encode(records.LEAVE)
            elif entry.is_directory:
                yield records.encode(records.ENTER, name, entry.mode & 0o777)
            elif there.get(self._path(name)) == self._stamp(entry, name):
                if not name:
                    yield records.encode(records.SKIP)
            elif entry.is_file or entry.is_hard_link:
                yield records.encode(records.FILE, name, entry.mode & 0o777, mtime=self._stamp(entry, name).mtime)
                async for piece in self._content(entry, name):
                    for start in range(0, len(piece), records.MAX_CONTENT):
                        yield records.encode(records.MORE, content=piece[start : start + records.MAX_CONTENT])
            else:
                yield records.encode(records.SKIP, name)
        yield records.encode(records.END)

    async def _entries(self) -> AsyncIterator[tuple[TarEntry | None, str]]:
        """Each with its name, which the top has none of; None where a directory is left, the top as well."""
        is_tree = False
        while (entry := await self._tar.next_entry()) is not None:
            names = entry.path.split("/")[1:]
            while self._inside != names[:-1]:
                if not self._inside:
                    raise ProtocolError("the engine's archive is in no order")
                self._inside.pop()
                yield None, ""
            yield entry, names[-1] if names else ""
            if entry.is_directory:
                is_tree = True
                self._inside += names[-1:]
        for _ in range(len(self._inside) + is_tree):
            yield None, ""

    async def _content(self, entry: TarEntry, name: str) -> AsyncIterator[bytes]:
        content = self._again(self._path(name)) if entry.is_hard_link else self._tar.content()
        async with aclosing(cast(Any, content)) as pieces:
            async for piece in pieces:
                yield piece

    def _path(self, name: str) -> str:
        return "/".join([*self._inside, name])

    def _stamp(self, entry: TarEntry, name: str) -> Stamp:
        exact = self._times.get(self._path(name), entry.mtime)
        is_same = exact // SECOND == entry.mtime // SECOND  # else the file was written in between
        return Stamp(entry.size, entry.mode & 0o777, exact if is_same else entry.mtime)


TELL_TIMES = """
TZ=UTC0 find "$1" -type f -exec sh -c '
printf "%s\\0" "$@" ""
stat -c %y "$@"
printf "\\0"
' sh {} + 2> /dev/null
exit 0
"""
"""A script: batches of paths and of as many times, one a line; each has a NUL behind it, and so have both lists."""


def times_told(told: bytes, top: str) -> Mapping[str, int]:
    """What `TELL_TIMES` has told, by path below ``top``; a sandbox's programs may tell anything.

    A batch of which a file was removed meanwhile is left out, and all that is behind nonsense.
    """
    found: dict[str, int] = {}
    fields = told.removesuffix(b"\0").split(b"\0") if told else []
    with suppress(ValueError, IndexError):
        while fields:
            end = fields.index(b"")
            paths, lines, fields = fields[:end], fields[end + 1].decode("ascii").splitlines(), fields[end + 2 :]
            if len(paths) == len(lines):
                found |= {_below(path, top): _nanoseconds(line) for path, line in zip(paths, lines, strict=True)}
    return found


def _below(path: bytes, top: str) -> str:
    return path.decode("utf-8", "surrogateescape").removeprefix(top).removeprefix("/")


def _nanoseconds(line: str) -> int:
    """``2009-02-13 23:31:30.123456000``, with a zone behind it or without."""
    seconds, _, fraction = line.partition(".")
    return int(datetime.fromisoformat(f"{seconds}+00:00").timestamp()) * SECOND + int(fraction[:9])
