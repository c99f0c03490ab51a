"""What of the host a sandbox sees: its programs, this notebook's Python, and a few harmless settings, read-only."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from yaosb_jupyter.errors import RuntimeUnavailableError

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SETTINGS = tuple(
    f"/etc/{name}"
    for name in (
        *(
            "alternatives",
            "ca-certificates",
            "debian_version",
            "fonts",
            "gai.conf",
            "host.conf",
            "hosts",
            "ld.so.cache",
        ),
        *("localtime", "mime.types", "nsswitch.conf", "os-release", "pki", "protocols", "resolv.conf", "services"),
        *("ssl", "timezone"),
    )
)
USER = "sandbox"
USER_ID = 1000
"""The name and number that a sandbox's user has inside, whoever it is outside."""


@dataclass(frozen=True, kw_only=True)
class HostView:
    """``prefixes``: directories of this Python outside ``/usr``; ``python``: the interpreter the guest runs on."""

    prefixes: tuple[str, ...]
    python: str
    path: str

    @classmethod
    def of_this_python(cls) -> HostView:
        """Raises `RuntimeUnavailableError` where showing this Python would show the user's home."""
        own = {os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix), sys.prefix, sys.base_prefix}
        python = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
        outside = sorted(prefix for prefix in own if not _within(prefix, "/usr"))
        prefixes = tuple(p for p in outside if not any(_within(p, other) and p != other for other in outside))
        home = str(Path.home())
        for prefix in prefixes:
            if _within(home, prefix):
                raise RuntimeUnavailableError(
                    f"this Python is installed in {prefix}, and a sandbox that sees it would see all of {home}",
                    hint="use a Python of a directory of its own, such as a virtual environment",
                )
        directories = [f"{sys.prefix}/bin", f"{sys.base_prefix}/bin", "/usr/local/bin", "/usr/bin", "/bin"]
        return cls(prefixes=prefixes, python=python, path=":".join(dict.fromkeys(directories)))


def environment(view: HostView, *, home: str, temporary: str) -> Mapping[str, str]:
    """The variables of every command: a list of what is wanted, and nothing of the daemon's own.

    This Python is shown read-only, so pip installs below the home, where Python and the shell look too.
    """
    installed = f"{home}/.local"
    packages = f"{installed}/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    return {
        "PATH": f"{installed}/bin:{view.path}",
        "PYTHONPATH": packages,
        "PIP_PREFIX": installed,
        "HOME": home,
        "TMPDIR": temporary,
        "LANG": "C.UTF-8",
        "USER": USER,
        "LOGNAME": USER,
        "SHELL": "/bin/sh",
    }


def _within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
