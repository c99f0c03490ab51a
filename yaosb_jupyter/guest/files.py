"""The operations on files: of the workspace, and of it alone (see docs/link-protocol.md)."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterator, List, Tuple

from .confined import ConfinedDirectory, Entry, entry_of
from .job import WAIT, Job, Step, Steps
from .link import Stream
from .loop import Loop
from .manifest import Manifest, survey
from .packing import Packer
from .records import checked_name
from .unpacking import Unpacker, Within
from .watch import watch

MOUNT = "/workspace"
PIECE = 1 << 18
BATCH = 1 << 16
"""Bytes of a message of entries, about: those of one are fewer than a message may hold, whatever its names."""

Request = Dict[str, Any]


def operations(loop: Loop, workdir: str) -> Dict[str, Callable[[Stream, Request], None]]:
    """Those on the files below ``workdir``."""
    directory = ConfinedDirectory(workdir, (MOUNT, workdir))

    def serve(stream: Stream, request: Request) -> None:
        operation = OPERATIONS[request["op"]]
        Job(loop, stream, lambda job: operation(directory, job, request))

    return dict.fromkeys(OPERATIONS, serve)


def _read(directory: ConfinedDirectory, _: Job, request: Request) -> Steps:
    offset, size = int(request.get("offset", 0)), request.get("size")
    fd, end = directory.open_file(_names(request))
    try:
        if size is not None:
            end = min(end, offset + int(size))
        while offset < end:
            data = os.pread(fd, min(PIECE, end - offset), offset)
            if not data:
                break  # cut shorter meanwhile
            offset += len(data)
            yield data
    finally:
        os.close(fd)
    return None


def _write(directory: ConfinedDirectory, job: Job, request: Request) -> Steps:
    mode = request.get("mode")
    staged = directory.stage(_names(request), None if mode is None else int(mode))

    def write(data: bytes) -> Iterator[None]:
        staged.write(data)
        yield

    try:
        yield from _fed(job, write)
        return _told(entry_of(staged.name, staged.commit(), None))
    finally:
        staged.discard()


def _stat(directory: ConfinedDirectory, _: Job, request: Request) -> Steps:
    yield None
    return _told(directory.stat(_names(request), bool(request.get("follow"))))


def _list(directory: ConfinedDirectory, _: Job, request: Request) -> Steps:
    batch: List[Dict[str, Any]] = []
    size = 0
    for entry in directory.list(_names(request)):
        batch.append(_told(entry))
        size += 100 + 6 * (len(entry.name) + len(entry.target or ""))
        if size > BATCH:
            yield {"entries": batch}
            batch, size = [], 0
        yield None
    yield {"entries": batch}
    return None


def _mkdir(directory: ConfinedDirectory, _: Job, request: Request) -> Steps:
    yield None
    os.close(directory.make_directory(_names(request)))
    return None


def _remove(directory: ConfinedDirectory, _: Job, request: Request) -> Steps:
    yield from directory.remove(_names(request), bool(request.get("recursive")))
    return None


def _rename(directory: ConfinedDirectory, _: Job, request: Request) -> Steps:
    yield None
    directory.rename(_names(request), _names(request, "target"))
    return None


def _watch(directory: ConfinedDirectory, job: Job, request: Request) -> Steps:
    fd = directory.open_directory(_names(request))
    try:
        yield from watch(fd, job)
    finally:
        os.close(fd)
    return None


def _manifest(directory: ConfinedDirectory, _: Job, request: Request) -> Steps:
    names = _names(request)
    yield from survey(lambda: directory.open_tree(names), bool(request.get("checksum")))
    return None


def _pack(directory: ConfinedDirectory, job: Job, request: Request) -> Steps:
    names, there = _names(request), Manifest()
    if request.get("manifest"):
        yield from _fed(job, there.feed)
    yield from Packer(lambda: directory.open_tree(names), there.stamps).steps()
    return None


def _unpack(directory: ConfinedDirectory, job: Job, request: Request) -> Steps:
    unpacker = Unpacker(Within(directory, _names(request)))
    try:
        yield from _fed(job, unpacker.feed)
        unpacker.finish()
    finally:
        unpacker.close()
    return None


def _fed(job: Job, feed: Callable[[bytes], Iterator[None]]) -> Iterator[Step]:
    """Passes on what arrives, to its end."""
    while not job.ended:
        data = job.take()
        if data is None:
            yield WAIT
        else:
            yield from feed(data)


OPERATIONS: Dict[str, Callable[[ConfinedDirectory, Job, Request], Steps]] = {
    "files.read": _read,
    "files.write": _write,
    "files.stat": _stat,
    "files.list": _list,
    "files.mkdir": _mkdir,
    "files.remove": _remove,
    "files.rename": _rename,
    "files.watch": _watch,
    "files.manifest": _manifest,
    "files.pack": _pack,
    "files.unpack": _unpack,
}


def _names(request: Request, field: str = "names") -> Tuple[str, ...]:
    """The path in a request. Raises `RecordError`."""
    return tuple(checked_name(os.fsencode(name)) for name in request[field])


def _told(entry: Entry) -> Dict[str, Any]:
    return entry._asdict()
