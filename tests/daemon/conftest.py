"""A daemon of this test's own: its directories and environment, and what ends it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.manager.waiting import until
from tests.rig.require import TEST_IMAGE
from yaosb_jupyter.core.lock import LOCK_NAME
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.daemon.connect import connect_async
from yaosb_jupyter.daemon.place import Place
from yaosb_jupyter.errors import NotFoundError


def wait_until(condition: Callable[[], object], within: float = 20.0) -> None:
    """Returns when ``condition`` gives something true; processes give no event to wait for."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether it runs; what has ended and is not reaped yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


async def pid_of_command(manager: AsyncManager) -> int:
    """What a command in the sandbox ``lab`` wrote to the file ``pid``, once both are there."""
    found = 0

    async def is_there() -> int:
        nonlocal found
        try:
            found = int(await (await manager.get("lab")).files.read_text("pid"))
        except (NotFoundError, ValueError):
            pass
        return found

    await until(is_there, within=20)
    return found


@dataclass
class Station:
    """One data directory with its daemon, which comes with the first client and goes with the test."""

    root: Path
    place: Place
    environ: dict[str, str]
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def pid(self) -> int | None:
        """The daemon's, while it holds the data directory."""
        try:
            pid = int(json.loads((self.place.data_dir / LOCK_NAME).read_text())["pid"])
        except (OSError, ValueError):
            return None
        return pid if is_alive(pid) else None

    def kill(self, signum: int = signal.SIGKILL) -> None:
        """Sends the daemon a signal and returns when it has ended."""
        pid = self.pid
        if pid is not None:
            os.kill(pid, signum)
            wait_until(lambda: not is_alive(pid))

    def script(self, code: str, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        """Another process that is a client."""
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            env=self.environ | environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    @property
    def log(self) -> str:
        return self.place.log.read_text()

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=20)
        self.kill(signal.SIGTERM)


@pytest.fixture
def station(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Station]:
    # Sockets need a short path.
    runtime_dir = Path(tempfile.mkdtemp(prefix="yaosb-"))
    given = {
        "YAO_DATA_DIR": str(tmp_path / "data"),
        "YAO_RUNTIME_DIR": str(runtime_dir),
        "YAO_TAI_ADDR": "memory://daemon",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    for name in [name for name in os.environ if name.startswith("YAO_")]:
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    place = Place(data_dir=tmp_path / "data", runtime_dir=runtime_dir)
    station = Station(tmp_path, place, dict(os.environ))
    yield station
    station.close()
    if request.node.get_closest_marker("docker") is not None:
        remove_containers(station)
    shutil.rmtree(runtime_dir, ignore_errors=True)


def docker(*arguments: str) -> list[str]:
    """What the engine's command line tells, a line each."""
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.splitlines()


def label(station: Station) -> str:
    """The filter for what belongs to a station's data directory."""
    return f"label=sandbox-data-dir={(station.place.data_dir / 'id').read_text().strip()}"


def remove_containers(station: Station) -> None:
    if (station.place.data_dir / "id").exists():
        for container in docker("ps", "-aq", "--filter", label(station)):
            docker("rm", "-f", container)


def configure(station: Station, monkeypatch: pytest.MonkeyPatch, address: str, **limits: int) -> None:
    """Gives the daemon one pool, of tests' images and small sandboxes."""
    config = station.root / "config.json"  # JSON is YAML
    pool = {"name": "one", "address": address, "image": TEST_IMAGE, "memory": "64m", "limits": limits}
    config.write_text(json.dumps({"pools": [pool], "stop_timeout": 1, "max_sandboxes": 0}))
    monkeypatch.setenv("YAO_CONFIG", str(config))
    station.environ["YAO_CONFIG"] = str(config)


Connect = Callable[..., Any]


@pytest.fixture
async def connect(station: Station) -> AsyncIterator[Connect]:
    """Makes clients in this process."""
    async with AsyncExitStack() as stack:

        async def make(**defaults: Any) -> AsyncManager:
            manager = await connect_async(**defaults)
            stack.push_async_callback(manager.close)
            return manager

        yield make


@pytest.fixture
async def manager(connect: Connect) -> AsyncManager:
    client: AsyncManager = await connect()
    return client
