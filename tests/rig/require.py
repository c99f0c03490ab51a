"""What a test needs of the machine: skip with one line when it is missing, fail when `YAOSB_REQUIRE` names it.

A test marked `docker` or `embedded` is asked for by its marker; others call `require("docker-tls")` themselves.
`YAOSB_REQUIRE` is a comma list of the names in `PROBES`.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from yaosb_jupyter.images.catalogue import IMAGES

TEST_IMAGE = os.environ.get("SANDBOX_TEST_IMAGE") or "yaosb/test-base:1"
"""The image of tests on an engine: has python3 and procps."""

NOPYTHON_IMAGE = "yaosb/test-nopython:1"
"""Has sh, and no python3."""

SYSTEM_PYTHON = "/usr/bin/python3"


def _docker() -> str | None:
    try:
        import docker
        from docker.errors import DockerException, ImageNotFound
    except ImportError:
        return "the docker package is not installed (make env)"
    address = os.environ.get("SANDBOX_TEST_LOCAL_ADDR", "")
    try:
        if address.startswith(("unix://", "tcp://")):
            client = docker.DockerClient(base_url=address, timeout=10)
        else:
            client = docker.from_env(timeout=10)
    except DockerException:
        return "no Docker engine answers (tests/rig/engine.sh start)"
    try:
        client.ping()
        for image in (TEST_IMAGE, NOPYTHON_IMAGE):
            client.images.get(image)
    except ImageNotFound:
        return "the test images are not there (tests/rig/image.sh)"
    except (DockerException, OSError):
        return "no Docker engine answers (tests/rig/engine.sh start)"
    finally:
        client.close()
    return None


def _our_images() -> str | None:
    if (reason := _docker()) is not None:
        return reason
    import docker
    from docker.errors import ImageNotFound

    client = docker.from_env(timeout=10)
    try:
        for image in IMAGES.values():
            client.images.get(image.full_name)
    except ImageNotFound:
        return f"our images are not built (yaosb image build {' '.join(IMAGES)})"
    finally:
        client.close()
    return None


def _docker_tls() -> str | None:
    if not os.environ.get("SANDBOX_TEST_REMOTE_ADDR"):
        return 'SANDBOX_TEST_REMOTE_ADDR is not set (eval "$(tests/rig/engine.sh env)")'
    return None


def _landlock() -> bool:
    """Whether the kernel has Landlock on, as its list of security modules tells."""
    modules = Path("/sys/kernel/security/lsm")
    try:
        if "landlock" in modules.read_text().split(","):
            return True
    except OSError:
        pass  # securityfs is often not mounted in containers: ask the kernel
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    create_ruleset, version_flag = 444, 1  # the same number on every architecture
    return int(libc.syscall(create_ruleset, None, 0, version_flag)) > 0


def _bubblewrap() -> str | None:
    from yaosb_jupyter.tai.runtimes.embedded.bubblewrap import find_program

    program = find_program()
    if program is None:
        return "bwrap is not there (make env, or Debian's bubblewrap)"
    argv = [program, "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--die-with-parent", "true"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    if done.returncode:
        return f"bwrap cannot make a sandbox here: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}"
    return None


def _embedded() -> str | None:
    if sys.platform != "linux":
        return "the embedded runtime's confinement needs Linux"
    if (reason := _bubblewrap()) is not None and not _landlock():
        return f"{reason}; and the kernel has no Landlock"
    return None


def _root() -> str | None:
    return None if os.geteuid() == 0 else "this needs root"


def _system_python() -> str | None:
    """A Python that every user can run, and that our compiled packages are for."""
    ours = sys.version_info[:2]
    code = "import sys; sys.exit(sys.version_info[:2] != " + repr(tuple(ours)) + ")"
    try:
        done = subprocess.run([SYSTEM_PYTHON, "-c", code], timeout=20, check=False)
    except OSError:
        return f"there is no {SYSTEM_PYTHON}"
    return f"{SYSTEM_PYTHON} is not Python {ours[0]}.{ours[1]}" if done.returncode else None


def _other_pythons() -> str | None:
    from tests.guest.rig import other_pythons

    return None if other_pythons() else "no python3.8 to python3.15 is on the PATH (YAOSB_TEST_PYTHONS names some)"


def _browser() -> str | None:
    try:
        import playwright.async_api  # noqa: F401
    except ImportError:
        return "the playwright package is not installed (make env)"
    return None if chromium() else "there is no Chromium (tests/rig/browser.sh)"


def chromium() -> str | None:
    """The system's own: SANDBOX_TEST_CHROMIUM, or the one on the PATH."""
    return os.environ.get("SANDBOX_TEST_CHROMIUM") or shutil.which("chromium")


PROBES: Mapping[str, Callable[[], str | None]] = {
    "docker": _docker,
    "docker-tls": _docker_tls,
    "our-images": _our_images,
    "embedded": _embedded,
    "bubblewrap": _bubblewrap,
    "browser": _browser,
    "root": _root,
    "system-python": _system_python,
    "other-pythons": _other_pythons,
}
"""Each tells what is missing in one line, or None."""


@functools.cache
def missing(name: str) -> str | None:
    """What is missing for `name`, in one line, or None. Asked once per run."""
    with ThreadPoolExecutor(1) as thread:  # asked on a loop too, which must not be blocked
        return thread.submit(PROBES[name]).result()


def required() -> frozenset[str]:
    """The names that must not be missing, from `YAOSB_REQUIRE`."""
    return frozenset(name.strip() for name in os.environ.get("YAOSB_REQUIRE", "").split(",") if name.strip())


def require(*names: str) -> None:
    """Skip the running test when one of `names` is missing here; fail it when `YAOSB_REQUIRE` names that one."""
    for name in names:
        reason = missing(name)
        if reason is None:
            continue
        if name in required():
            pytest.fail(f"{name} is required by YAOSB_REQUIRE: {reason}", pytrace=False)
        pytest.skip(f"{name}: {reason}")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a name in `YAOSB_REQUIRE` that means nothing."""
    if unknown := required() - PROBES.keys():
        known = ", ".join(sorted(PROBES))
        raise pytest.UsageError(f"YAOSB_REQUIRE names {', '.join(sorted(unknown))}; accepted: {known}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Ask for what the test's markers name, before its fixtures are made."""
    for marker in item.iter_markers():
        if marker.name in PROBES:
            require(marker.name)
