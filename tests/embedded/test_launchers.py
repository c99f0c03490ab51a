"""The launcher that a root daemon keeps in hand."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from yaosb_jupyter.tai.runtimes.embedded.launchers import Launcher, Launchers


@pytest.fixture
def launchers() -> Iterator[Launchers]:
    made = Launchers()
    yield made
    made.close()


def living_children() -> set[int]:
    children = Path(f"/proc/self/task/{threading.main_thread().native_id}/children")
    return set(map(int, children.read_text(encoding="ascii").split()))


def test_one_is_in_hand_and_is_given_once(launchers: Launchers) -> None:
    before = living_children()
    launchers.refill()
    launchers.refill()
    (waiting,) = living_children() - before
    first, second = launchers.take(), launchers.take()
    assert first.child.pid == waiting != second.child.pid
    first.end()
    second.end()
    assert living_children() == before


def test_another_takes_the_place_of_one_that_was_killed(launchers: Launchers) -> None:
    before = living_children()
    launchers.refill()
    (waiting,) = living_children() - before
    os.kill(waiting, 9)
    os.waitid(os.P_PID, waiting, os.WEXITED | os.WNOWAIT)
    taken = launchers.take()
    assert taken.child.pid != waiting
    assert taken.child.poll() is None
    taken.end()
    assert living_children() == before


def test_none_is_left_after_the_end(launchers: Launchers) -> None:
    before = living_children()
    launchers.refill()
    launchers.close()
    assert living_children() == before


def test_it_ends_with_whoever_started_it() -> None:
    launcher = Launcher.start()
    assert launcher.child.stdin is not None
    launcher.child.stdin.close()
    assert launcher.child.wait(20) == 0
    os.close(launcher.told)
