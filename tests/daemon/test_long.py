"""A real engine, many processes, and a daemon that is killed again and again."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.daemon.conftest import Connect, Station, configure, docker, label, wait_until
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.tai.runtimes.docker.throwaway import THROWAWAY_LABEL

pytestmark = [pytest.mark.docker, pytest.mark.long, pytest.mark.timeout(1800)]


class OnDocker:
    """What is found on the engine and in the data directory of one station."""

    def __init__(self, station: Station) -> None:
        self.station = station

    def containers(self) -> set[str]:
        """The uids of all containers."""
        template = '{{.Label "sandbox-uid"}}'
        return set(docker("ps", "-a", "--filter", label(self.station), "--format", template))

    def volumes(self) -> set[str]:
        return set(docker("volume", "ls", "-q", "--filter", label(self.station)))

    def directories(self) -> set[str]:
        return {path.name for path in (self.station.place.data_dir / "sandboxes").iterdir()}

    def links(self) -> set[str]:
        """The uids that the links for people lead to."""
        return {path.readlink().name for path in (self.station.place.data_dir / "by-owner").glob("*/*")}


BUSY = """
import sys, random, threading
import yaosb_jupyter as y

stopping = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stopping.set()), daemon=True).start()
manager = None
done = lost = 0
while not stopping.is_set():
    try:
        manager = manager or y.connect()
        sandbox = manager.create(lifecycle=random.choice(["session", "one-shot", "long-running", "persistent"]))
        assert sandbox.exec("echo $((6 * 7))").stdout == "42\\n"
        if random.random() < 0.7:
            manager.remove(sandbox.uid)
        done += 1
    except y.NotFoundError:
        done += 1  # a one-shot, or removed by a call whose answer was lost
    except (y.UnavailableError, y.NotRunningError, y.ExecError):
        lost += 1
print(done, lost)
"""
CLIENTS = 8
KILLS = 20


async def test_a_daemon_killed_twenty_times_under_load_leaves_nothing_unknown(
    station: Station, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(station, monkeypatch, "local")
    engine = OnDocker(station)
    networks = set(docker("network", "ls", "--format", "{{.Name}}"))
    choose = random.Random(20240517)
    clients = [station.script(BUSY) for _ in range(CLIENTS)]
    for _ in range(KILLS):
        await asyncio.to_thread(wait_until, lambda: station.pid is not None, within=120)
        await asyncio.sleep(choose.uniform(0.0, 6.0))
        await asyncio.to_thread(station.kill)
    await asyncio.to_thread(wait_until, lambda: station.pid is not None, within=120)
    done = 0
    for client in clients:
        out, err = await asyncio.to_thread(client.communicate, "", 300)
        assert client.returncode == 0, err
        done += int(out.split()[0])
    assert done > CLIENTS, "they got work done in between"
    await asyncio.to_thread(station.kill)

    manager = await connect()
    await manager.cleanup()
    known = {info.uid for info in await manager.list()}
    assert engine.containers() <= known
    assert engine.directories() == known
    assert engine.links() == known
    assert engine.volumes() <= {f"yaosb-{uid}" for uid in known}
    assert set(docker("network", "ls", "--format", "{{.Name}}")) - networks <= {"yaosb"}
    assert not await asyncio.to_thread(_orphans)

    for info in await manager.list():
        await manager.remove(info.uid)
    assert engine.containers() == set()
    assert engine.directories() == set()
    assert engine.links() == set()
    assert engine.volumes() == set()


def _orphans() -> list[str]:
    """Helper containers whose process is gone."""
    template = f'{{{{.Label "{THROWAWAY_LABEL}"}}}}'
    makers = docker("ps", "-a", "--filter", f"label={THROWAWAY_LABEL}", "--format", template)
    return [maker for maker in makers if not Path("/proc", maker.split()[-1]).exists()]


CREATING = """
import asyncio, sys
import yaosb_jupyter as y

async def main():
    async with await y.connect_async() as manager:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        made = await asyncio.gather(*(manager.create() for _ in range(10)), return_exceptions=True)
        kinds = [type(each).__name__ for each in made]
        print(kinds.count("AsyncSandbox"), kinds.count("LimitExceededError"), *set(kinds))

asyncio.run(main())
"""


async def test_fifty_creates_at_once_never_pass_the_limit(
    station: Station, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAULTS M4, on the real engine."""
    configure(station, monkeypatch, "local", max_total=10)
    clients = [station.script(CREATING) for _ in range(5)]
    for client in clients:
        assert client.stdout is not None
        assert await asyncio.to_thread(client.stdout.readline) == "ready\n"
    answers = await asyncio.gather(*(asyncio.to_thread(client.communicate, "go\n", 300) for client in clients))
    counts = [answer[0].split() for answer in answers]
    assert sum(int(each[0]) for each in counts) == 10, answers
    assert sum(int(each[1]) for each in counts) == 40, answers
    manager: AsyncManager = await connect()
    containers = OnDocker(station).containers()
    assert containers == {info.uid for info in await manager.list()}
    assert len(containers) == 10
