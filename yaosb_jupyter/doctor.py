"""What works on this machine, and what to do where it does not: `yaosb doctor`."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from dataclasses import dataclass
from enum import StrEnum

from yaosb_jupyter.core.lock import file_system_type, refuse_network_file_system
from yaosb_jupyter.daemon.place import Place, prepare
from yaosb_jupyter.daemon.start import find
from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.settings import Settings
from yaosb_jupyter.tai.client import open_host
from yaosb_jupyter.types import PoolSpec
from yaosb_jupyter.units import format_size
from yaosb_jupyter.version import __version__

_PROBE_PATIENCE = 30.0
_SPACE_NEEDED = 2**30


class Health(StrEnum):
    GOOD = "good"
    FAIR = "fair"
    """Not there, and not needed."""
    BAD = "bad"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing looked at: what was found, and what to do about it (``""``: nothing)."""

    name: str
    health: Health
    found: str
    advice: str = ""


async def diagnose(settings: Settings) -> list[Finding]:
    """Looks at everything a sandbox needs; changes nothing but that the directories are there afterwards."""
    findings = [_python(), await asyncio.to_thread(_directories, settings), await _daemon(settings)]
    runtimes = await asyncio.gather(_runtime(settings, "docker", "local"), _runtime(settings, "embedded", "embedded"))
    findings += runtimes
    if not any(finding.health is Health.GOOD for finding in runtimes):
        advice = "install Docker or bubblewrap, or allow plain processes for a pool of embedded (no isolation)"
        findings.append(Finding(name="sandboxes", health=Health.BAD, found="none can be made here", advice=advice))
    return findings


def _python() -> Finding:
    found = f"{platform.python_version()} at {sys.executable}, yaosb-jupyter {__version__}, {platform.platform()}"
    return Finding(name="python", health=Health.GOOD, found=found)


def _directories(settings: Settings) -> Finding:
    try:
        prepare(Place.of(settings))
        refuse_network_file_system(settings.data_dir)
    except SandboxError as error:
        return _bad("data directory", error)
    free = shutil.disk_usage(settings.data_dir).free
    kind = file_system_type(settings.data_dir) or "unknown file system"
    found = f"{settings.data_dir} ({kind}, {format_size(free)} free), sockets in {settings.runtime_dir}"
    if not os.access(settings.data_dir, os.W_OK):
        return Finding(name="data directory", health=Health.BAD, found=f"{found}, not writable", advice="YAO_DATA_DIR")
    if free < _SPACE_NEEDED:
        return Finding(name="data directory", health=Health.FAIR, found=found, advice="make room, or set YAO_DATA_DIR")
    return Finding(name="data directory", health=Health.GOOD, found=found)


async def _daemon(settings: Settings) -> Finding:
    place = Place.of(settings)
    try:
        connection = await find(place)
    except SandboxError as error:
        return _bad("daemon", error)
    if connection is None:
        return Finding(name="daemon", health=Health.FAIR, found="does not run; it is started when it is needed")
    hello = await connection.ready()
    await connection.close()
    found = f"runs as process {hello.get('pid')}, version {hello.get('version')}, log {place.log}"
    return Finding(name="daemon", health=Health.GOOD, found=found)


async def _runtime(settings: Settings, name: str, address: str) -> Finding:
    try:
        async with asyncio.timeout(_PROBE_PATIENCE):
            host = await open_host(PoolSpec(name=name, address=address), runtime_dir=settings.runtime_dir)
    except SandboxError as error:
        return Finding(name=name, health=Health.FAIR, found=error.message, advice=error.hint or "")
    except TimeoutError:
        return Finding(name=name, health=Health.FAIR, found=f"did not answer within {_PROBE_PATIENCE:g} s")
    info = host.info
    await host.close()
    found = f"{info.version}; isolation: {info.isolation.means}"
    return Finding(name=name, health=Health.GOOD, found=found)


def _bad(name: str, error: SandboxError) -> Finding:
    return Finding(name=name, health=Health.BAD, found=error.message, advice=error.hint or "")
