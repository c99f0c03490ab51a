"""Work on the background loop that a cell waits for, shows, and can interrupt."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import Protocol, TypeVar

from yaosb_jupyter.jupyter.mailbox import Mailbox

T = TypeVar("T")
R = TypeVar("R")


class Start(Protocol):
    """Starts a coroutine function on the loop; cancelling the future cancels it there."""

    def __call__(self, work: Callable[[], Awaitable[R]], /) -> Future[R]: ...


_PATIENCE = 5.0
_LINGER = 0.002
"""Seconds in which what belongs together arrives: a program's line is often two writes."""


def follow(
    start: Start,
    work: Callable[[Mailbox[T]], Awaitable[R]],
    show: Callable[[Sequence[T]], None],
    *,
    interval: float = 0.02,
) -> R:
    """Runs ``work``, showing in this thread what it posts, at most once in ``interval`` seconds.

    `KeyboardInterrupt` cancels the work and is raised when that has ended; what it posts until then is shown too.
    """
    mailbox: Mailbox[T] = Mailbox()

    async def run() -> R:
        try:
            return await work(mailbox)
        finally:
            mailbox.close()

    future = start(run)
    try:
        shown = 0.0
        while (items := mailbox.take(not_before=shown + interval, linger=_LINGER)) is not None:
            show(items)
            shown = time.monotonic()
        return future.result()
    except BaseException:
        future.cancel()
        _drain(mailbox, show)
        raise


def _drain(mailbox: Mailbox[T], show: Callable[[Sequence[T]], None]) -> None:
    """Shows what is posted until the end. A second interrupt stops the waiting."""
    deadline = time.monotonic() + _PATIENCE
    while (left := deadline - time.monotonic()) > 0:
        items = mailbox.take(timeout=left)
        if items is None:
            return
        show(items)
