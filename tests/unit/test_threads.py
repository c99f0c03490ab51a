"""Blocking work for coroutines, and what cancelling does to it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from yaosb_jupyter.tai.threads import in_thread


async def test_the_result_and_the_error_come_through() -> None:
    assert await in_thread(max, 1, 2) == 2
    with pytest.raises(ZeroDivisionError):
        await in_thread(divmod, 1, 0)


@pytest.mark.parametrize("times", [1, 3])
async def test_a_cancelled_call_ends_only_with_its_thread(times: int) -> None:
    entered, go, left = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        entered.set()
        go.wait(10)
        left.set()
        raise ValueError("nobody hears this")

    task = asyncio.ensure_future(in_thread(work))
    await asyncio.to_thread(entered.wait, 10)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left.is_set()
