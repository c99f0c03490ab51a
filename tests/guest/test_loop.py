"""The guest's loop, and what it holds on to."""

from __future__ import annotations

import gc
import os
import signal
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from yaosb_jupyter.guest.command import Command
from yaosb_jupyter.guest.loop import FEW_TIMERS, READ, Loop, Timer
from yaosb_jupyter.guest.spawn import Spawner


@pytest.fixture
def loop() -> Iterator[Loop]:
    before = signal.set_wakeup_fd(-1)
    handler = signal.getsignal(signal.SIGCHLD)
    yield Loop()
    signal.signal(signal.SIGCHLD, handler)
    signal.set_wakeup_fd(before)


class _Sink:
    def room(self) -> int:
        return 1 << 16

    def send(self, kind: int, data: bytes) -> None:
        """Nobody reads it."""


def test_timers_that_were_cancelled_are_let_go(loop: Loop) -> None:
    class Held:
        def due(self) -> None: ...

    held = [Held() for _ in range(10 * FEW_TIMERS)]
    known = [weakref.ref(one) for one in held]
    for one in held:
        loop.later(3600, one.due).cancel()
    del held, one
    gc.collect()
    assert not [ref for ref in known if ref() is not None]
    assert len([one for one in gc.get_objects() if isinstance(one, Timer)]) <= 2 * FEW_TIMERS


def test_a_command_that_ended_before_its_timeout_is_let_go(loop: Loop) -> None:
    ended: list[dict[str, Any]] = []

    def done(result: dict[str, Any]) -> None:
        ended.append(result)
        loop.later(0.5, lambda: loop.stop(0))  # the last of its own timers is due by then

    command = Command(loop, "one", _Sink(), done)
    pid = 0

    def reap() -> None:
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if found:
            held = known()
            assert held is not None
            held.reaped(status, usage)

    loop.on_signal(signal.SIGCHLD, reap)
    command.start(Spawner(), ["true"], "/", dict(os.environ), 3600)
    pid = command.pid
    known = weakref.ref(command)
    del command
    assert loop.run() == 0
    assert ended
    assert not ended[0]["timed_out"]
    gc.collect()
    assert known() is None


def test_there_is_one_moment_for_tidying_after_each_time_of_work(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yaosb_jupyter.guest.loop.REST", 0.02)
    rests: list[int] = []
    loop.at_rest(lambda: rests.append(len(rests)))
    reading, writing = os.pipe()

    def work() -> None:
        os.read(reading, 1)

    loop.watch(reading, READ, work)
    loop.later(0.01, lambda: os.write(writing, b"x") and None)
    loop.later(0.3, lambda: os.write(writing, b"x") and None)
    loop.later(0.6, lambda: loop.stop(0))
    loop.run()
    os.close(reading)
    os.close(writing)
    assert rests == [0, 1]
