"""FAULTS M4: whenever a creation is cancelled, nothing is left of it and its slot is free."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from tests.manager.conftest import OpenManager
from tests.manager.rigs import MemoryRig
from tests.manager.waiting import until
from yaosb_jupyter.choices import Status
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.service import Progress
from yaosb_jupyter.daemon.streaming import with_progress
from yaosb_jupyter.link.stream import Stream
from yaosb_jupyter.types import PullProgress


async def test_m4_a_create_cancelled_at_once_gives_its_slot_back(
    open_on_memory: OpenManager, memory_rig: MemoryRig
) -> None:
    manager = await open_on_memory(max_sandboxes=1)
    for ticks in range(8):
        creating = asyncio.create_task(manager.create("lab"))
        for _ in range(ticks):
            await asyncio.sleep(0)
        creating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await creating
    await until(lambda: _is_empty(manager))
    assert memory_rig.held() == set()
    await manager.create("lab")


async def test_m4_a_create_cancelled_as_it_ends_leaves_nothing(
    open_on_memory: OpenManager, memory_rig: MemoryRig
) -> None:
    manager = await open_on_memory()
    for ticks in range(8):
        creating = asyncio.create_task(manager.create("lab"))
        while not await _is_running(manager, "lab"):  # noqa: ASYNC110 - the moment itself is wanted
            await asyncio.sleep(0)
        for _ in range(ticks):
            await asyncio.sleep(0)
        if creating.cancel():
            with pytest.raises(asyncio.CancelledError):
                await creating
        else:
            await creating.result().remove()
        await until(lambda: _is_empty(manager))
        assert memory_rig.held() == set()


async def _is_running(manager: AsyncManager, id: str) -> bool:
    return any(info.id == id and info.status is Status.RUNNING for info in await manager.list())


async def _is_empty(manager: AsyncManager) -> bool:
    return not await manager.list()


class UnreadStream:
    """Stands for one whose client reads nothing more."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def send_message(self, _message: Mapping[str, Any]) -> None:
        self.asked.set()
        await asyncio.Event().wait()


async def test_m4_what_is_done_is_told_though_its_progress_was_cancelled() -> None:
    """Else the client could not undo it."""
    stream = UnreadStream()

    async def work(progress: Progress) -> str:
        progress(PullProgress(layer="one", status="downloading"))
        await stream.asked.wait()
        progress(PullProgress(layer="two", status="downloading"))
        stream.asked.clear()
        return "made"

    telling = asyncio.create_task(with_progress(cast(Stream, stream), work))
    for _ in range(2):
        await stream.asked.wait()
        await asyncio.sleep(0)
    telling.cancel()
    assert await telling == "made"
