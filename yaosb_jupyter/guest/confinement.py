"""Taking rights away from this thread, and from all that it will start. Told what to do, it knows no runtime.

``limits``: ``processes`` of this user here, ``data`` bytes of private memory of one process.
``confinement``: ``landlock`` lists of paths to ``read`` and to ``write``, ``scope`` true keeps signals and abstract
sockets inside; ``seccomp`` true takes away the system calls that reach the kernel's dangerous parts; ``sockets`` names
of the families that cannot be opened, ``["*"]`` all; ``apart`` true leaves the guest itself out of it.
"""

from __future__ import annotations

import resource

from . import libc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict


def limit(limits: Dict[str, Any]) -> None:
    for name, kind in (("processes", resource.RLIMIT_NPROC), ("data", resource.RLIMIT_DATA)):
        if limits.get(name):
            _, hard = resource.getrlimit(kind)
            value = int(limits[name]) if hard == resource.RLIM_INFINITY else min(int(limits[name]), hard)
            resource.setrlimit(kind, (value, value))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def confine(wanted: Dict[str, Any]) -> None:
    """Raises `OSError` where the kernel refuses: the caller must not go on then."""
    from . import landlock, seccomp  # before this file may be out of reach

    libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
    landlock_rules = wanted.get("landlock")
    if landlock_rules is not None:
        landlock.restrict(landlock_rules["read"], landlock_rules["write"], bool(landlock_rules.get("scope")))
    if wanted.get("seccomp") or wanted.get("sockets"):
        seccomp.install(seccomp.program(bool(wanted.get("seccomp")), wanted.get("sockets") or []))
