"""Starting on demand: once, detached, and told why where it fails."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.daemon.conftest import Connect, Station, is_alive, wait_until
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.daemon.connect import connect_async
from yaosb_jupyter.daemon.place import Facts, prepare, write_facts
from yaosb_jupyter.errors import (
    DataDirectoryBusyError,
    InvalidOptionError,
    NotAvailableError,
    SandboxError,
)

CLIENT = """
import sys, yaosb_jupyter
sys.stdin.readline()
with yaosb_jupyter.connect() as manager:
    manager.create()
    print(len(manager.list()))
"""


def test_eight_processes_at_once_start_one_daemon(station: Station) -> None:
    clients = [station.script(CLIENT) for _ in range(8)]
    for client in clients:
        assert client.stdin is not None
        client.stdin.write("go\n")
        client.stdin.flush()
    counts = []
    for client in clients:
        out, err = client.communicate(timeout=60)
        assert client.returncode == 0, err
        counts.append(int(out))
    assert max(counts) == 8, "they share one manager"
    assert station.log.count(" serving ") == 1


async def test_the_daemon_is_detached_from_whoever_started_it(station: Station, manager: AsyncManager) -> None:
    pid = station.pid
    assert pid is not None
    assert os.getsid(pid) != os.getsid(0)
    assert os.getpgid(pid) != os.getpgid(0)
    stat = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    assert int(stat[1]) != os.getpid(), "no child of ours is left to wait for"
    assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
    assert Path(f"/proc/{pid}/fd/0").readlink() == Path(os.devnull)
    for descriptor in (1, 2):
        assert Path(f"/proc/{pid}/fd/{descriptor}").readlink() == station.place.log


async def test_the_daemon_inherits_no_descriptors(station: Station) -> None:
    leaked = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(leaked, True)
    os.dup2(leaked, 250, inheritable=True)
    try:
        async with await connect_async():
            assert not Path(f"/proc/{station.pid}/fd/250").exists()
    finally:
        os.close(leaked)
        os.close(250)


async def test_what_a_kernel_is_told_does_not_reach_the_daemon(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JPY_PARENT_PID", "1")
    async with await connect_async():
        assert b"JPY_PARENT_PID" not in Path(f"/proc/{station.pid}/environ").read_bytes()


async def test_a_daemon_that_was_killed_leaves_nothing_in_the_way(station: Station, connect: Connect) -> None:
    """A stale socket, stale facts, a stale lock file."""
    await connect()
    station.kill()
    assert station.place.socket.exists()
    assert station.place.facts.exists()
    client = await connect()
    assert await client.list() == []
    assert station.log.count(" serving ") == 2


async def test_facts_that_are_rubbish_are_in_nobodys_way(station: Station, connect: Connect) -> None:
    await asyncio.to_thread(prepare, station.place)
    station.place.facts.write_text('{"pid": "x"')
    await (await connect()).list()


async def test_facts_of_a_process_that_is_no_daemon_are_in_nobodys_way(station: Station, connect: Connect) -> None:
    await asyncio.to_thread(prepare, station.place)
    nowhere = Facts(pid=1, socket=str(station.root / "nothing"), version="1")
    await asyncio.to_thread(write_facts, station.place, nowhere)
    await (await connect()).list()


async def test_a_client_with_another_runtime_directory_finds_the_daemon(
    station: Station, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    await connect()
    monkeypatch.setenv("YAO_RUNTIME_DIR", str(station.root / "other"))
    await (await connect()).list()
    assert station.log.count(" serving ") == 1


async def test_a_daemon_of_other_settings_that_nobody_uses_is_replaced(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a first attempt with a pool that cannot be used is followed by one with another pool."""
    async with await connect_async():
        first = station.pid
    monkeypatch.setenv("YAO_TAI_ADDR", "memory://another")
    async with await connect_async() as manager:
        assert [pool.address for pool in await manager.pools()] == ["memory://another"]
    assert station.pid != first


async def test_a_daemon_of_other_settings_that_is_used_is_told_and_kept(
    station: Station, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = None
    async with await connect_async() as other:
        pid = station.pid
        monkeypatch.setenv("YAO_TAI_ADDR", "memory://another")
        with pytest.warns(UserWarning, match="other settings than yours.*: tai_addr. `yaosb shutdown`"):
            await connect()
        await other.create("lab")
    with pytest.warns(UserWarning, match="tai_addr"):
        manager = await connect()
    assert [info.id for info in await manager.list()] == ["lab"]
    assert station.pid == pid


async def test_a_daemon_of_other_settings_that_somebody_runs_on_purpose_is_kept(
    station: Station, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YAO_DAEMON_IDLE_EXIT", "0")
    async with await connect_async():
        pid = station.pid
    monkeypatch.setenv("YAO_TAI_ADDR", "memory://another")
    with pytest.warns(UserWarning, match="tai_addr"):
        await connect()
    assert station.pid == pid


async def test_a_daemon_that_is_ending_is_waited_for(station: Station, connect: Connect) -> None:
    first = await connect()
    sandbox = await first.create("lab")
    command = sandbox.stream("trap '' TERM; echo ready; sleep 60")
    events = aiter(command)
    await anext(events)
    pid = station.pid
    assert pid is not None
    os.kill(pid, signal.SIGTERM)  # takes the grace of the command
    await asyncio.to_thread(wait_until, lambda: not station.place.socket.exists())
    assert is_alive(pid)
    assert [info.id for info in await (await connect()).list()] == ["lab"]
    assert station.pid != pid
    with pytest.raises(SandboxError):
        await anext(events)


async def test_a_directory_owned_by_a_manager_in_a_process_is_busy(station: Station) -> None:
    code = "import sys, yaosb_jupyter as y\nwith y.Manager.open():\n  print('open', flush=True)\n  sys.stdin.read()"
    owner = station.script(code)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "open\n"
    with pytest.raises(DataDirectoryBusyError, match=str(owner.pid)) as caught:
        await connect_async()
    assert "YAO_DATA_DIR" in str(caught.value)


async def test_a_failing_start_tells_why(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YAO_TAI_ADDR", "tcp://127.0.0.1:1")
    with pytest.raises(SandboxError, match=r"127\.0\.0\.1") as caught:
        await connect_async()
    assert any(str(station.place.log) in note for note in caught.value.__notes__)
    assert "the daemon has failed" in station.log
    assert station.pid is None


async def test_a_bad_configuration_is_told_by_its_field(
    station: Station, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = station.root / "config.yaml"
    monkeypatch.setenv("YAO_CONFIG", str(config))
    config.write_text("{}")
    await connect()
    station.kill()
    config.write_text("pools: [{name: one, address: 'memory://x', memory: much}]")
    with pytest.raises(InvalidOptionError, match="memory"):
        await connect_async()


async def test_a_daemon_that_dies_at_once_is_told_with_the_end_of_its_log(
    station: Station, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho boom >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(NotAvailableError, match="boom"):
        await connect_async()


async def test_a_start_that_was_cancelled_does_not_block_the_next(station: Station, connect: Connect) -> None:
    attempt = asyncio.create_task(connect_async())
    await asyncio.to_thread(wait_until, station.place.start_lock.exists)
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    await (await connect()).list()
    assert station.log.count(" serving ") == 1


async def test_a_runtime_directory_of_somebody_else_is_refused(
    station: Station, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    link = station.place.runtime_dir / "link"
    link.symlink_to(target)
    monkeypatch.setenv("YAO_RUNTIME_DIR", str(link))
    with pytest.raises(NotAvailableError, match="somebody else"):
        await connect_async()


async def test_a_socket_path_that_is_too_long_is_told(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YAO_RUNTIME_DIR", str(station.root / ("x" * 100)))
    with pytest.raises(NotAvailableError, match="too long"):
        await connect_async()


async def test_a_starter_that_is_killed_leaves_a_daemon_for_the_others(station: Station, connect: Connect) -> None:
    starter = station.script(CLIENT)
    assert starter.stdin is not None
    starter.stdin.write("go\n")
    starter.stdin.flush()
    await asyncio.to_thread(wait_until, station.place.start_lock.exists)
    starter.kill()
    await asyncio.gather(*(connect() for _ in range(3)))
    assert station.log.count(" serving ") == 1
