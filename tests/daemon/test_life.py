"""How a daemon ends, and what it leaves."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from tests.daemon.conftest import Connect, Station, is_alive, pid_of_command, wait_until
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.daemon import log as daemon_log
from yaosb_jupyter.daemon import start
from yaosb_jupyter.daemon.connect import connect_async
from yaosb_jupyter.daemon.stop import stop_daemon
from yaosb_jupyter.version import __version__, is_newer


async def gone(station: Station, pid: int | None) -> None:
    assert pid is not None
    await asyncio.to_thread(wait_until, lambda: not is_alive(pid))


async def test_a_daemon_without_clients_and_sandboxes_ends(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YAO_DAEMON_IDLE_EXIT", "200ms")
    async with await connect_async() as manager:
        pid = station.pid
        assert pid is not None
        await asyncio.sleep(0.5)  # longer than the idle time: a client is use
        assert is_alive(pid)
        await manager.create("lab")
    await asyncio.sleep(0.5)  # a sandbox is use
    assert is_alive(pid)
    async with await connect_async() as manager:
        await manager.remove("lab")
    await gone(station, pid)
    assert "nothing to do" in station.log
    assert not station.place.socket.exists()


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_it_cleanly(station: Station, manager: AsyncManager, signum: int) -> None:
    sandbox = await manager.create("lab")
    running = asyncio.create_task(sandbox.exec("echo $$ > pid; exec sleep 60"))
    command = await pid_of_command(manager)
    await asyncio.to_thread(station.kill, signum)
    assert not is_alive(command)
    await asyncio.gather(running, return_exceptions=True)
    assert station.log.rstrip().endswith("stopped")
    assert not station.place.socket.exists()
    assert "Traceback" not in station.log
    assert (await manager.get("lab")).uid == sandbox.uid, "sandboxes go on"


async def test_stopping_returns_when_the_directory_is_free(station: Station, manager: AsyncManager) -> None:
    pid = station.pid
    assert await stop_daemon(station.place) == pid
    assert station.pid is None
    assert await stop_daemon(station.place) is None


async def test_a_newer_client_takes_over_from_an_older_daemon(
    station: Station, manager: AsyncManager, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = await manager.create("lab")
    before = station.pid
    monkeypatch.setattr(start, "__version__", "99.0")
    newer = await connect()
    assert [info.uid for info in await newer.list()] == [sandbox.uid]
    assert station.pid != before
    assert [info.uid for info in await manager.list()] == [sandbox.uid]


async def test_a_newer_client_does_not_disturb_what_an_older_daemon_serves(
    station: Station, manager: AsyncManager, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = await manager.create("lab")
    before = station.pid
    async with sandbox.stream("echo ready; sleep 0.5; exit 3") as stream:
        events = aiter(stream)
        await anext(events)
        monkeypatch.setattr(start, "__version__", "99.0")
        newer = await connect()
        assert station.pid == before
        assert [info.id for info in await newer.list()] == ["lab"]
        assert (await stream.wait()).exit_code == 3
    await gone(station, before)
    assert [info.id for info in await newer.list()] == ["lab"]


async def test_an_equal_or_older_client_leaves_the_daemon_alone(
    station: Station, manager: AsyncManager, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = station.pid
    await connect()
    monkeypatch.setattr(start, "__version__", "0.0.1")
    await connect()
    assert station.pid == before


@pytest.mark.parametrize(
    ("newer", "older"),
    [("0.2", "0.1"), ("0.10.0", "0.9"), ("1.0", "1.0rc1"), ("1.0rc2", "1.0rc1"), ("0.1.0", "0.1.0.dev0"), ("1", "0")],
)
def test_versions_are_compared_as_versions(newer: str, older: str) -> None:
    assert is_newer(newer, older)
    assert not is_newer(older, newer)


@pytest.mark.parametrize("version", [__version__, "1.0", "1.0.0rc1", ""])
def test_no_version_is_newer_than_itself(version: str) -> None:
    assert not is_newer(version, version)
    assert not is_newer("1.0.0", "1.0")


ROTATING = """
import logging, os, sys
from pathlib import Path
from yaosb_jupyter.daemon import log
log._SIZE = 2000
path = Path(sys.argv[1])
log.log_to_file(path)
for n in range(100):
    logging.getLogger("x").info("line %d %s", n, "." * 50)
os.write(2, b"from the interpreter\\n")
"""


def test_the_log_is_rotated_and_takes_what_goes_to_stderr(station: Station) -> None:
    path = station.root / "rotating.log"
    subprocess.run([sys.executable, "-c", ROTATING, str(path)], check=True, timeout=30)
    assert path.read_text().endswith("from the interpreter\n")
    assert sorted(found.name for found in station.root.glob("rotating*")) == [
        "rotating.log",
        "rotating.log.1",
        "rotating.log.2",
    ]
    assert all(found.stat().st_size < 2500 for found in station.root.glob("rotating*"))
    assert daemon_log.last_lines(path, 1) == "from the interpreter"
    assert daemon_log.last_lines(station.root / "nothing") == ""


def test_serve_in_the_foreground_stops_on_interrupt(station: Station) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "yaosb_jupyter", "serve"], env=station.environ, stderr=subprocess.PIPE, text=True
    )
    wait_until(station.place.facts.exists)
    wait_until(station.place.socket.exists)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert "serving" in err
    assert err.rstrip().endswith("stopped")
