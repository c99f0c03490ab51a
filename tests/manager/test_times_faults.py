"""FAULTS.md, M. Ends by age and idleness: M3, M8, M13 to M17."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.manager.clocks import ManualClock
from tests.manager.conftest import OpenManager
from tests.manager.rigs import MemoryRig
from tests.manager.waiting import is_empty, until
from yaosb_jupyter.choices import Status
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import (
    InvalidOptionError,
    SandboxLostError,
)


async def _has(sandbox: AsyncSandbox, path: str) -> bool:
    return path in [file.name for file in await sandbox.files.list()]


async def test_m3_age_goes_on_after_recovery(open_on_memory: OpenManager) -> None:
    clock = ManualClock()
    first = await open_on_memory(clock=clock)
    await first.create("lab", max_lifetime="1h")
    clock.advance(50 * 60)
    await first.close()
    clock.advance(20 * 60)
    second = await open_on_memory(clock=clock)
    await until(lambda: is_empty(second))


async def test_m14_an_end_by_age_is_not_told_as_idleness(open_on_memory: OpenManager) -> None:
    clock = ManualClock()
    manager = await open_on_memory(clock=clock)
    sandbox = await manager.create("lab", max_lifetime="1h")
    running = asyncio.create_task(sandbox.exec("echo on > there; sleep 60"))
    await until(lambda: _has(sandbox, "there"))
    clock.advance(2 * 3600)
    await manager.cleanup()
    with pytest.raises(SandboxLostError, match="its max_lifetime of 1 h was over"):
        await running
    await until(lambda: is_empty(manager))


async def test_m8_an_idle_long_running_sandbox_is_stopped_once(
    open_on_memory: OpenManager, memory_rig: MemoryRig
) -> None:
    clock = ManualClock()
    manager = await open_on_memory(clock=clock)
    sandbox = await manager.create("lab", lifecycle="long-running", idle_timeout="1h")
    await sandbox.files.write("kept.txt", "kept")
    clock.advance(3601)
    assert list(await manager.cleanup()) == ["lab"]
    info = await sandbox.info()
    assert info.status is Status.STOPPED
    assert "idle" in info.status_reason
    clock.advance(100 * 3600)
    memory_rig.engine.fail_next("stop")  # nobody calls it
    assert list(await manager.cleanup()) == []
    assert await sandbox.files.read_text("kept.txt") == "kept"


async def test_m13_what_is_in_flight_keeps_it_alive(open_on_memory: OpenManager) -> None:
    clock = ManualClock()
    manager = await open_on_memory(clock=clock)
    sandbox = await manager.create("lab", idle_timeout="10m")
    async with sandbox.stream("read line", stdin=True) as stream:
        clock.advance(3600)
        assert list(await manager.cleanup()) == []
        await stream.send("done\n")
        assert (await stream.wait()).exit_code == 0
    clock.advance(599)
    assert list(await manager.cleanup()) == []

    upload_goes_on = asyncio.Event()

    async def slow_content():  # type: ignore[no-untyped-def]
        yield b"first"
        await upload_goes_on.wait()
        yield b"second"

    uploading = asyncio.create_task(sandbox.files.write("big", slow_content()))
    await asyncio.sleep(0.05)
    clock.advance(3600)
    assert list(await manager.cleanup()) == []
    upload_goes_on.set()
    await uploading
    clock.advance(601)
    assert list(await manager.cleanup()) == ["lab"]


async def test_m14_looking_is_not_use(open_on_memory: OpenManager) -> None:
    clock = ManualClock()
    manager = await open_on_memory(clock=clock)
    sandbox = await manager.create("lab", idle_timeout="10m")
    for _ in range(6):
        clock.advance(101)
        await sandbox.info()
        await manager.list()
        await manager.pools()
        await sandbox.stats()
        await sandbox.heartbeat(active=False, process_count=0)
        async for _chunk in sandbox.logs():
            pass
    assert list(await manager.cleanup()) == ["lab"]


async def test_m15_looking_and_connecting_leave_timeouts_alone(open_on_memory: OpenManager) -> None:
    clock = ManualClock()
    manager = await open_on_memory(clock=clock)
    sandbox = await manager.create("lab", idle_timeout="10m", max_lifetime="1h")
    before = await sandbox.info()
    clock.advance(60)
    again = await (await manager.get("lab")).info()
    assert again.expires_at == before.expires_at
    await manager.get_or_create("lab")
    after = await sandbox.info()
    assert (after.idle_timeout, after.max_lifetime) == (600, 3600)


async def test_m16_a_jump_of_the_wall_clock_expires_nothing(open_on_memory: OpenManager) -> None:
    clock = ManualClock()
    manager = await open_on_memory(clock=clock)
    await manager.create("lab", idle_timeout="10m", max_lifetime="1d")
    for jump in (timedelta(days=400), timedelta(days=-800)):
        clock.wall += jump
        assert list(await manager.cleanup()) == []
        assert len(await manager.list()) == 1


async def test_m17_fractions_count_and_zero_means_never(open_on_memory: OpenManager) -> None:
    clock = ManualClock()
    manager = await open_on_memory(clock=clock)
    await manager.create("short", idle_timeout=0.25)
    never = await manager.create("never", idle_timeout=0)
    assert (await never.info()).expires_at is None
    clock.advance(0.2)
    assert list(await manager.cleanup()) == []
    clock.advance(0.1)
    assert list(await manager.cleanup()) == ["short"]
    clock.advance(10**9)
    assert list(await manager.cleanup()) == []
    with pytest.raises(InvalidOptionError, match="idle_timeout"):
        await manager.create("negative", idle_timeout=-1)
