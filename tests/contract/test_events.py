"""Events: what happens to environments is told to all who listen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tests.contract.box import Box, eventually
from tests.contract.conftest import MakeBox
from yaosb_jupyter.choices import Status
from yaosb_jupyter.tai.runtimes.base import EnvironmentEvent, Runtime


class Listener:
    """Everything that a runtime's events told."""

    def __init__(self, runtime: Runtime) -> None:
        self.heard: list[EnvironmentEvent] = []
        self._task = asyncio.ensure_future(self._listen(runtime))

    async def _listen(self, runtime: Runtime) -> None:
        async for event in runtime.events():
            self.heard.append(event)

    def of(self, box: Box) -> Sequence[Status]:
        return [event.status for event in self.heard if event.runtime_id == box.runtime_id]

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        assert self._task.cancelled()


async def listening(runtime: Runtime, probe: Box) -> Listener:
    """A listener that is known to hear: a probe was started and stopped until it told."""
    listener = Listener(runtime)

    async def hears() -> bool:
        await probe.start()
        await probe.stop(timeout=1)
        return bool(listener.heard)

    await eventually(hears, what="the listener hears the probe")
    return listener


def seen(listener: Listener, box: Box, status: Status) -> Callable[[], object]:
    async def check() -> bool:
        return status in listener.of(box)

    return check


async def test_start_stop_and_remove_are_told_in_order(runtime: Runtime, make_box: MakeBox) -> None:
    listener = await listening(runtime, await make_box(start=False))
    box = await make_box()
    await box.stop()
    await runtime.remove(box.runtime_id)
    await eventually(seen(listener, box, Status.REMOVED), what="the removal is told")
    told = [status for status in listener.of(box) if status in (Status.RUNNING, Status.STOPPED, Status.REMOVED)]
    assert list(dict.fromkeys(told)) == [Status.RUNNING, Status.STOPPED, Status.REMOVED]
    await listener.stop()


async def test_an_end_of_its_own_is_told(runtime: Runtime, make_box: MakeBox) -> None:
    listener = await listening(runtime, await make_box(start=False))
    box = await make_box(cmd=("sh", "-c", "sleep 0.3; exit 3"))
    await eventually(seen(listener, box, Status.STOPPED), what="its end is told")
    assert Status.REMOVED not in listener.of(box)
    await listener.stop()


async def test_all_who_listen_are_told(runtime: Runtime, make_box: MakeBox) -> None:
    probe = await make_box(start=False)
    listeners = [await listening(runtime, probe), await listening(runtime, probe)]
    box = await make_box()
    for listener in listeners:
        await eventually(seen(listener, box, Status.RUNNING), what="the start is told")
    await listeners[0].stop()
    await box.stop()
    await eventually(seen(listeners[1], box, Status.STOPPED), what="the stop is told to who is left")
    await listeners[1].stop()
