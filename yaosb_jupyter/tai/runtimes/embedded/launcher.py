"""Run by a root daemon as a program of its own: drops to a sandbox's user, and takes along what that user cannot reach.

``launcher.py FD`` waits for its order, a line of JSON on stdin; without one it ends. ``stage`` is the program of
bubblewrap, the directory of its libraries (may be empty) and the sources: in a private mount namespace each is bound to
``/tmp/N``, N its place in this list, whatever the rights of the directories above it. Then the program is run as
``user`` (uid, gid) with ``argv``, told to say at FD what it starts; its outputs go to ``log``. Standard library only;
started with ``-I -S``.
"""

from __future__ import annotations

import ctypes
import json
import os
import stat
import sys

STAGE = "/tmp"

_CLONE_NEWNS = 0x00020000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x2, 0x4, 0x1000, 0x4000, 0x40000

_libc = ctypes.CDLL(None, use_errno=True)


def main(info: str) -> None:
    line = _read_line()
    if not line:
        return  # whoever started it has gone
    order = json.loads(line)
    (uid, gid), sources, argv = order["user"], order["stage"], order["argv"]
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    _check(_libc.unshare(_CLONE_NEWNS), "a mount namespace of its own")
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    # Opened before the stage hides some of them.
    opened = {number: os.open(source, os.O_PATH) for number, source in enumerate(sources) if source}
    _mount("stage", STAGE, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755,size=1m")
    for number, fd in opened.items():
        target = f"{STAGE}/{number}"
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            os.mkdir(target)  # noqa: PTH102 - pathlib would double the start
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
        _mount(f"/proc/self/fd/{fd}", target, None, _MS_BIND | _MS_REC)
        os.close(fd)
    os.chdir("/")
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    program = f"{STAGE}/0"
    os.execve(program, [program, "--info-fd", info, *argv], {"LD_LIBRARY_PATH": f"{STAGE}/1"} if sources[1] else {})


def _read_line() -> bytes:
    """The next thing on stdin comes only when the program has spoken: nothing of it is read here."""
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 1 << 16)
        if not piece:
            return b""
        line += piece
    return line


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    done = _libc.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3])
    _check(done, f"mounting {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        sys.exit(f"launcher: {what} is refused: {os.strerror(number)}")


if __name__ == "__main__":
    main(sys.argv[1])
