"""Iterators over what happens on the loop, as they are given up."""

from __future__ import annotations

import sys
import threading
from collections.abc import AsyncIterator

import pytest

from yaosb_jupyter.blocking.face import Face
from yaosb_jupyter.blocking.loop import background


def test_an_iterator_that_is_dropped_on_the_loops_thread_lets_its_source_go(monkeypatch: pytest.MonkeyPatch) -> None:
    closed, complaints = threading.Event(), []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)

    async def source() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.set()

    held = [Face(background())._iterate(source)]
    assert next(held[0]) == 1

    async def drop() -> None:
        held.clear()

    background().run(drop)
    assert closed.wait(10)
    assert complaints == []
