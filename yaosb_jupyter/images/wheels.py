"""The wheels that an image installs, fetched by this host's pip, so that its build asks no Python registry."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from pathlib import Path

from yaosb_jupyter.errors import NotAvailableError, UnavailableError
from yaosb_jupyter.images.platforms import Platform

_PYTHON = "3.11"  # Debian bookworm's
_LAST_LINES = 5


async def fetch_wheels(requirements: Path, platform: Platform, directory: Path) -> None:
    """Downloads what ``requirements`` name, hashes checked, into ``directory``; ends with its caller.

    Raises `NotAvailableError` where this Python has no pip, `UnavailableError` with what pip says.
    """
    if importlib.util.find_spec("pip") is None:
        raise NotAvailableError(f"{sys.executable} has no pip", hint=f"{sys.executable} -m ensurepip")
    tags = [part for tag in platform.wheel_tags for part in ("--platform", tag)]
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--only-binary", ":all:"]
    argv += ["--implementation", "cp", "--python-version", _PYTHON, *tags]
    argv += ["--dest", str(directory), "--requirement", str(requirements)]
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"},
    )
    try:
        said, _ = await process.communicate()  # takes as long as the network does, and can be cancelled
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        words = "\n".join(said.decode(errors="replace").strip().splitlines()[-_LAST_LINES:])
        raise UnavailableError(
            f"the wheels for {platform} could not be fetched: {words}", hint="check pip's index and the network"
        )
