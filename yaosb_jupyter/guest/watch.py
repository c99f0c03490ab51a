"""What changes in a directory: told by inotify, else looked for once in a while."""

from __future__ import annotations

import errno
import os
from typing import Any, Dict, Iterator, List, Optional, Tuple

from . import libc
from .confined import look_again
from .job import WAIT, Job, Steps
from .loop import READ

POLL = 1.0
SETTLE = 0.05
"""What changes within this time, in seconds, is told together."""
MOST = 20_000
BATCH = 100

_ATTRIB, _CLOSE_WRITE, _MOVED, _CREATE, _DELETE = 0x4, 0x8, 0xC0, 0x100, 0x200
_DELETE_SELF, _MODIFY, _ONLYDIR = 0x400, 0x2, 0x1000000

Snapshot = Dict[str, Tuple[int, float, int]]


def watch(fd: int, job: Job) -> Steps:
    """Messages about the open directory ``fd`` until it is removed; the first, without events, when it is watched.

    What is told comes from comparing what is there, so that nothing is queued while the host does not read.
    """
    bell = _Bell(fd, job)
    try:
        seen = _snapshot(fd)
        yield {"events": []}
        gone = False
        while not gone:
            yield WAIT
            gone = os.fstat(fd).st_nlink == 0
            if bell.rung or gone:
                bell.rung = False
                now = {} if gone else _snapshot(fd)
                yield from _messages(seen, now)
                seen = now
    finally:
        bell.close()
    return None


def _snapshot(fd: int) -> Snapshot:
    """Raises `OSError` for more than can be compared."""
    found: Snapshot = {}
    for name in os.listdir(fd):
        entry = look_again(fd, name)
        if entry is not None:
            found[name] = (entry.mode, entry.mtime, entry.size)
        if len(found) > MOST:
            raise OSError(errno.E2BIG, "more than %d files are not watched" % MOST)
    return found


def _messages(before: Snapshot, after: Snapshot) -> Iterator[Dict[str, Any]]:
    events: List[Dict[str, str]] = [{"event": "removed", "name": name} for name in before if name not in after]
    for name, state in after.items():
        if name not in before:
            events.append({"event": "created", "name": name})
        elif before[name] != state:
            events.append({"event": "changed", "name": name})
    for start in range(0, len(events), BATCH):
        yield {"events": events[start : start + BATCH]}


class _Bell:
    """Rings, and wakes the job, when something may have changed."""

    def __init__(self, directory: int, job: Job) -> None:
        self.rung = False
        self._job = job
        self._inotify = _inotify(directory)
        self._closed = False
        self._settling = False
        if self._inotify is not None:
            job.loop.watch(self._inotify, READ, self._stirred)
        else:
            job.loop.later(POLL, self._poll)

    def close(self) -> None:
        self._closed = True
        if self._inotify is not None:
            self._job.loop.unwatch(self._inotify)
            os.close(self._inotify)

    def _stirred(self) -> None:
        assert self._inotify is not None
        os.read(self._inotify, 1 << 16)
        if not self._settling:
            self._settling = True
            self._job.loop.later(SETTLE, self._ring)

    def _poll(self) -> None:
        if not self._closed:
            self._job.loop.later(POLL, self._poll)
            self._ring()

    def _ring(self) -> None:
        self._settling = False
        if not self._closed:
            self.rung = True
            self._job.wake()


def _inotify(directory: int) -> Optional[int]:
    """A descriptor that can be read when the directory changes; None where there are no more of those."""
    try:
        fd = libc.inotify_init()
    except OSError:
        return None
    mask = _ATTRIB | _CLOSE_WRITE | _MOVED | _CREATE | _DELETE | _DELETE_SELF | _MODIFY | _ONLYDIR
    try:
        libc.inotify_add_watch(fd, b"/proc/self/fd/%d" % directory, mask)
    except OSError:
        os.close(fd)
        return None
    return fd
