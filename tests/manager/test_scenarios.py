"""The nine scenarios of the source design, on every runtime."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.manager.conftest import OpenManager
from tests.manager.rigs import Rig
from tests.manager.waiting import until
from yaosb_jupyter.choices import ExecChannel, Status
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.errors import LimitExceededError, NotFoundError
from yaosb_jupyter.types import Exit, Output, PoolLimits


async def test_create_and_exec(manager: AsyncManager) -> None:
    sandbox = await manager.create("lab")
    result = await sandbox.exec(["echo", "hello"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "hello\n", "")
    info = await sandbox.info()
    assert info.status is Status.RUNNING
    assert [each.id for each in await manager.list()] == ["lab"]
    await sandbox.remove()
    assert not await manager.list()
    with pytest.raises(NotFoundError):
        await manager.get("lab")


async def test_create_with_labels(manager: AsyncManager) -> None:
    await manager.create("a", labels={"team": "blue", "kind": "build"})
    await manager.create("b", labels={"team": "red"})
    assert [info.id for info in await manager.list(labels={"team": "blue"})] == ["a"]
    assert (await (await manager.get("a")).info()).labels == {"team": "blue", "kind": "build"}


async def test_workspace(manager: AsyncManager) -> None:
    sandbox = await manager.create("lab")
    await sandbox.files.write("data/in.txt", "from outside\n")
    result = await sandbox.exec("cat data/in.txt && echo from inside > data/out.txt", check=True)
    assert result.stdout == "from outside\n"
    assert await sandbox.files.read_text("data/out.txt") == "from inside\n"
    assert [file.name for file in await sandbox.files.list("data")] == ["in.txt", "out.txt"]


async def test_idle_clean_up(open_manager: OpenManager) -> None:
    manager = await open_manager()
    sandbox = await manager.create("lab", idle_timeout=1)
    began = time.monotonic()

    async def gone() -> bool:
        return not await manager.list()

    await until(gone)
    assert time.monotonic() - began >= 0.9
    with pytest.raises(NotFoundError):
        await sandbox.exec("true")


async def test_start_recovery(open_manager: OpenManager) -> None:
    first = await open_manager()
    made = await (await first.create("lab", labels={"a": "b"}, lifecycle="long-running", idle_timeout="2h")).info()
    await (await first.get("lab")).files.write("kept.txt", "kept")
    await first.close()

    second = await open_manager()
    found = await (await second.get("lab")).info()
    # What changes by itself: when it was used last, and hence when it ends.
    assert found.uid == made.uid
    assert found.labels == made.labels
    assert found.idle_timeout == made.idle_timeout == 7200
    assert found.created_at == made.created_at
    assert found.status is Status.RUNNING
    sandbox = await second.get("lab")
    assert (await sandbox.exec(["cat", "kept.txt"])).stdout == "kept"


async def test_pool_limits(open_manager: OpenManager, rig: Rig) -> None:
    manager = await open_manager(pools=rig.pools("default", limits=PoolLimits(max_total=3, max_per_user=2)))
    await manager.create("one", owner="ann")
    await manager.create("two", owner="ann")
    with pytest.raises(LimitExceededError, match="ann"):
        await manager.create("three", owner="ann")
    await manager.create("one", owner="bob")
    with pytest.raises(LimitExceededError, match="limit of pool 'default' of 3"):
        await manager.create("one", owner="cid")
    await manager.remove((await manager.list(owner="bob"))[0].uid)
    await manager.create("one", owner="cid")


async def test_heartbeat_updates(open_manager: OpenManager) -> None:
    manager = await open_manager()
    sandbox = await manager.create("lab", idle_timeout=1)
    ends = time.monotonic() + 2.5
    while time.monotonic() < ends:
        await sandbox.heartbeat(active=True, process_count=3)
        await asyncio.sleep(0.2)
    info = await sandbox.info()
    assert info.status is Status.RUNNING
    assert info.process_count == 3


async def test_stream(manager: AsyncManager) -> None:
    sandbox = await manager.create("lab")
    command = "echo one; echo two >&2; read line; echo got $line; exit 3"
    async with sandbox.stream(command, stdin=True) as stream:
        await stream.send("three\n")
        await stream.close_stdin()
        events = [event async for event in stream]
    last = events.pop()
    assert isinstance(last, Exit)
    assert last.status.exit_code == 3
    outputs = [event for event in events if isinstance(event, Output)]
    assert len(outputs) == len(events)
    stdout = "".join(event.data for event in outputs if event.channel is ExecChannel.STDOUT)
    stderr = "".join(event.data for event in outputs if event.channel is ExecChannel.STDERR)
    assert (stdout, stderr) == ("one\ngot three\n", "two\n")


async def test_multi_pool(open_manager: OpenManager, rig: Rig) -> None:
    manager = await open_manager(pools=rig.pools("near", "far"))
    await manager.create("a")
    await manager.create("b", pool="far")
    assert {info.id: info.pool for info in await manager.list()} == {"a": "near", "b": "far"}
    assert [(pool.name, pool.total, pool.connected) for pool in await manager.pools()] == [
        ("near", 1, True),
        ("far", 1, True),
    ]
    assert [info.id for info in await manager.list(pool="far")] == ["b"]
