from __future__ import annotations

import asyncio
import threading
import time

from yaosb_jupyter.jupyter.mailbox import Mailbox


async def test_items_arrive_in_order_and_the_end_is_told() -> None:
    mailbox: Mailbox[int] = Mailbox()
    mailbox.post(1)
    await mailbox.put(2, 1)
    mailbox.close()
    assert mailbox.take() == [1, 2]
    assert mailbox.take() is None


async def test_a_sender_waits_until_there_is_room() -> None:
    mailbox: Mailbox[int] = Mailbox(limit=10)
    await mailbox.put(1, 10)
    second = asyncio.create_task(mailbox.put(2, 10))
    done, _ = await asyncio.wait([second], timeout=0.05)
    assert not done
    assert await asyncio.to_thread(mailbox.take) == [1]
    await asyncio.wait_for(second, 5)
    assert mailbox.take() == [2]


async def test_nothing_is_lost_between_a_fast_sender_and_a_slow_reader() -> None:
    mailbox: Mailbox[int] = Mailbox(limit=64)
    seen: list[int] = []

    def read() -> None:
        while (items := mailbox.take()) is not None:
            seen.extend(items)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(5000):
        await mailbox.put(number, 16)
    mailbox.close()
    await asyncio.to_thread(reader.join, 10)
    assert seen == list(range(5000))


def test_items_are_collected_until_a_time_and_ends_early_at_the_end() -> None:
    mailbox: Mailbox[int] = Mailbox()
    mailbox.post(1)
    timer = threading.Timer(0.01, lambda: (mailbox.post(2), mailbox.close()))
    timer.start()
    assert mailbox.take(not_before=time.monotonic() + 60) == [1, 2]
    timer.join()


def test_a_timeout_gives_nothing() -> None:
    mailbox: Mailbox[int] = Mailbox()
    assert mailbox.take(timeout=0.01) == []
