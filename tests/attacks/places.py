"""Where attacks are staged: as root, as an ordinary user, and in an unprivileged container."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.rig.require import SYSTEM_PYTHON, TEST_IMAGE, require

ROOT = Path(__file__).parents[2]
USER = 71234
"""An ordinary user that this host knows nothing of."""
TIMEOUT = 120


def _environment() -> dict[str, str]:
    """Our packages, for a Python of the system that any user can run."""
    packages = Path(msgspec.__file__).parents[1]
    return {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": "/tmp",
        "PYTHONPATH": f"{ROOT}:{packages}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def as_root() -> Sequence[str]:
    require("root", "system-python")
    return (SYSTEM_PYTHON,)


def as_user() -> Sequence[str]:
    require("system-python")
    if os.geteuid() != 0:
        return (SYSTEM_PYTHON,)
    return ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", SYSTEM_PYTHON)


def under_masked_proc() -> Sequence[str]:
    """Where something lies over a part of /proc, the kernel refuses a fresh one in a user namespace."""
    require("root", "system-python")
    script = 'mount -t tmpfs none /proc/irq && exec "$@"'
    return ("unshare", "--mount", "sh", "-c", script, "sh", *as_user())


def in_container(user: int) -> Sequence[str]:
    require("docker", "system-python")  # the image's is the same Debian's
    environment = _environment()
    mounts = {ROOT, Path(environment["PYTHONPATH"].partition(":")[2])}
    words = ["docker", "run", "--rm", "--init", "--network", "bridge", "--user", f"{user}:{user}"]
    for path in mounts:
        words += ["--mount", f"type=bind,source={path},target={path},readonly"]
    for name, value in environment.items():
        words += ["--env", f"{name}={value}"]
    return (*words, "--workdir", str(ROOT), TEST_IMAGE, "python3")


PLACES = {
    "root": as_root,
    "user": as_user,
    "masked proc": under_masked_proc,
    "container": lambda: in_container(USER),
    "container root": lambda: in_container(0),
}


@functools.cache
def staged(place: str, means: str, network: str) -> dict[str, Any]:
    """What `tests.attacks.stage` told there. Each is run once, and several tests look at it."""
    done = subprocess.run(
        [*PLACES[place](), "-m", "tests.attacks.stage", means, network],
        cwd=ROOT,
        env={**_environment(), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)  # type: ignore[no-any-return]
