"""Random lives of a manager on the memory runtime, against a simple model of what must be.

After every step: the engine holds nothing that the manager does not know, no limit is passed, no busy sandbox is
reaped, and every sandbox has the status that the model expects.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.manager.clocks import ManualClock
from tests.manager.conftest import Managers
from tests.manager.rigs import MemoryRig
from tests.manager.waiting import until
from yaosb_jupyter.choices import Lifecycle, Status
from yaosb_jupyter.core import following
from yaosb_jupyter.core.commands.command import CommandStream
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.errors import (
    AlreadyExistsError,
    LimitExceededError,
    NotFoundError,
    NotRunningError,
    RuntimeUnavailableError,
    SandboxError,
)

LIMIT = 3
IDLE = 100.0
LIFETIME = 1000.0
NAMES = ["a", "b", "c", "d"]

T = TypeVar("T")


@dataclass
class Expected:
    """What the model knows of one sandbox. ``used`` and ``born`` on the test's clock."""

    lifecycle: Lifecycle
    status: Status
    used: float
    born: float
    stream: CommandStream[str] | None = None
    doomed: bool = False

    def due(self, now: float) -> Status | None:
        """What its lifecycle has made of it at ``now``; None for nothing."""
        if self.lifecycle is Lifecycle.SESSION and now - self.born >= LIFETIME:
            return Status.REMOVED
        if self.stream is not None or now - self.used < IDLE:
            return None
        if self.lifecycle is Lifecycle.SESSION:
            return Status.REMOVED
        if self.lifecycle is Lifecycle.LONG_RUNNING and self.status is Status.RUNNING:
            return Status.STOPPED
        return None


class ManagerModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.root = Path(tempfile.mkdtemp(prefix="yaosb-model-"))
        self.rig = MemoryRig(self.root)
        self.clock = ManualClock()
        self.reachable = True
        self.model: dict[str, Expected] = {}
        self.manager: AsyncManager

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(20):
                return await work

        return self.runner.run(bounded())

    @property
    def now(self) -> float:
        return self.clock.monotonic()

    @initialize()
    def open(self) -> None:
        self.run(self._open())

    async def _open(self) -> None:
        managers = Managers(self.rig)
        self.manager = await managers.open(clock=self.clock, max_sandboxes=LIMIT)

    # -- steps ---------------------------------------------------------------------------------------------------------

    @rule(
        name=st.sampled_from(NAMES),
        lifecycle=st.sampled_from(Lifecycle),
        start=st.booleans(),
        fault=st.sampled_from([None, None, None, "create", "start"]),
        after=st.booleans(),
    )
    def create(self, name: str, lifecycle: Lifecycle, start: bool, fault: str | None, after: bool) -> None:
        expected: type[SandboxError] | tuple[type[SandboxError], ...] | None = None
        if not self.reachable:
            expected = RuntimeUnavailableError
        elif name in self.model:
            expected = AlreadyExistsError
        elif len(self.model) >= LIMIT:
            expected = LimitExceededError
        elif fault == "create" or (fault == "start" and start):
            self.rig.engine.fail_next(fault, after=after)
            expected = RuntimeUnavailableError
        creating = self.manager.create(
            name,
            lifecycle=lifecycle,
            start=start,
            idle_timeout=IDLE,
            max_lifetime=LIFETIME if lifecycle is Lifecycle.SESSION else 0,
        )
        if expected is not None:
            with pytest.raises(expected):
                self.run(creating)
            return
        self.run(creating)
        status = Status.RUNNING if start else Status.CREATED
        self.model[name] = Expected(lifecycle, status, used=self.now, born=self.now)

    @rule(name=st.sampled_from(NAMES))
    def execute(self, name: str) -> None:
        command = self.manager.exec(name, ["true"])
        expected = self.model.get(name)
        if (error := self._refusal(expected)) is not None:
            with pytest.raises(error):
                self.run(command)
            return
        assert expected is not None
        assert self.run(command).exit_code == 0
        self._command_ended(name, expected)

    @rule(name=st.sampled_from(NAMES))
    def begin_a_command(self, name: str) -> None:
        expected = self.model.get(name)
        if expected is None or expected.stream is not None or self._refusal(expected) is not None:
            return

        async def begin() -> CommandStream[str]:
            stream = await self.manager.stream(name, "read line", stdin=True)
            return await stream.__aenter__()

        expected.stream = self.run(begin())

    @rule(name=st.sampled_from(NAMES))
    def end_a_command(self, name: str) -> None:
        expected = self.model.get(name)
        if expected is None or expected.stream is None:
            return
        stream, expected.stream = expected.stream, None

        async def end() -> int:
            await stream.send("done\n")
            status = await stream.wait()
            await stream.aclose()
            return status.exit_code

        if self.reachable:
            assert self.run(end()) == 0
        else:
            self.run(stream.aclose())
        self._command_ended(name, expected)

    @rule(name=st.sampled_from(NAMES), fault=st.booleans())
    def stop(self, name: str, fault: bool) -> None:
        expected = self.model.get(name)
        stopping = self.manager.stop(name)
        if expected is None or expected.doomed:
            with pytest.raises(NotFoundError):
                self.run(stopping)
        elif expected.status is not Status.RUNNING:
            self.run(stopping)
        elif not self.reachable:
            with pytest.raises(RuntimeUnavailableError):
                self.run(stopping)
        elif fault:
            self.rig.engine.fail_next("stop", SandboxError("refused"))
            with pytest.raises(SandboxError, match="refused"):
                self.run(stopping)
        else:
            self.run(stopping)
            expected.status = Status.STOPPED
            self._lose_command(name, expected)

    @rule(name=st.sampled_from(NAMES))
    def start(self, name: str) -> None:
        expected = self.model.get(name)
        starting = self.manager.start(name)
        if expected is None or expected.doomed:
            with pytest.raises(NotFoundError):
                self.run(starting)
        elif expected.status is not Status.RUNNING and not self.reachable:
            expected.used = self.now
            with pytest.raises(RuntimeUnavailableError):
                self.run(starting)
        else:
            self.run(starting)
            expected.status = Status.RUNNING
            expected.used = self.now

    @rule(name=st.sampled_from(NAMES), fault=st.booleans())
    def remove(self, name: str, fault: bool) -> None:
        expected = self.model.get(name)
        removing = self.manager.remove(name)
        if expected is None:
            with pytest.raises(NotFoundError):
                self.run(removing)
        elif not self.reachable or (fault and expected.status is not Status.FAILED):
            if self.reachable:
                self.rig.engine.fail_next("remove", SandboxError("refused"))
            with pytest.raises(SandboxError):
                self.run(removing)
            expected.doomed, expected.status = True, Status.FAILED
        else:
            self.run(removing)
            self._forget(name)

    @rule(name=st.sampled_from(NAMES), active=st.booleans())
    def heartbeat(self, name: str, active: bool) -> None:
        expected = self.model.get(name)
        beating = self.manager.heartbeat(name, active=active, process_count=1)
        if expected is None:
            with pytest.raises(NotFoundError):
                self.run(beating)
            return
        self.run(beating)
        if active and expected.status is Status.RUNNING:
            expected.used = self.now

    @rule(seconds=st.sampled_from([1.0, 40.0, 99.5, 101.0, 600.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.run(self.manager.cleanup())
        if not self.reachable:
            return
        for name, expected in list(self.model.items()):
            due = expected.due(self.now)
            if (expected.doomed and seconds > 90) or (due is Status.REMOVED and not expected.doomed):
                self._forget(name)
            elif expected.doomed:
                self._forget_if_gone(name)
            elif due is Status.STOPPED:
                expected.status = Status.STOPPED

    @rule(name=st.sampled_from(NAMES))
    @precondition(lambda self: self.reachable)
    def somebody_removes_the_environment(self, name: str) -> None:
        environment = self._environment(name)
        if environment is None:
            return
        expected = self.model[name]
        self.rig.engine.vanish(environment)
        expected.status = Status.FAILED
        self._lose_command(name, expected)
        if expected.lifecycle is Lifecycle.ONE_SHOT:
            self._forget(name)
        self.run(until(self._as_expected))

    @rule(name=st.sampled_from(NAMES))
    @precondition(lambda self: self.reachable)
    def the_environment_dies(self, name: str) -> None:
        expected = self.model.get(name)
        environment = self._environment(name)
        if expected is None or environment is None or expected.status is not Status.RUNNING:
            return
        self.rig.engine.die(environment)
        expected.status = Status.STOPPED
        self.run(until(self._as_expected))
        self._lose_command(name, expected)

    @rule()
    @precondition(lambda self: self.reachable)
    def the_engine_goes_away(self) -> None:
        self.rig.engine.become_unreachable()
        self.reachable = False

        async def noticed() -> bool:
            return not (await self.manager.pools())[0].connected

        self.run(until(noticed))

    @rule()
    @precondition(lambda self: not self.reachable)
    def the_engine_comes_back(self) -> None:
        self.rig.engine.become_reachable()
        self.reachable = True

        async def noticed() -> bool:
            return (await self.manager.pools())[0].connected

        self.run(until(noticed))
        self.run(self.manager.cleanup())
        for name, expected in list(self.model.items()):
            expected.used = self.now  # the grace; a lifetime goes on
            if expected.doomed:
                self._forget_if_gone(name)
            elif expected.due(self.now) is Status.REMOVED:
                self._forget(name)

    @rule()
    @precondition(lambda self: self.reachable)
    def the_manager_restarts(self) -> None:
        self.run(self.manager.close())
        for name, expected in list(self.model.items()):
            expected.used = self.now
            if expected.stream is not None:
                expected.stream = None
                if expected.lifecycle is Lifecycle.ONE_SHOT:
                    self._forget(name)
        self.run(self._open())
        # A new manager tries what was refused at once.
        for name, expected in list(self.model.items()):
            if expected.doomed:
                self._forget_if_gone(name)

    # -- what must hold ------------------------------------------------------------------------------------------------

    @invariant()
    def nothing_is_unknown_and_no_limit_is_passed(self) -> None:
        infos = self.run(self.manager.list())
        assert self.rig.held() <= {info.uid for info in infos}
        assert len(infos) <= LIMIT

    @invariant()
    def all_is_as_the_model_expects(self) -> None:
        for name, expected in list(self.model.items()):
            if expected.doomed:
                self._forget_if_gone(name)  # it may go at any time
        infos = self.run(self.manager.list())
        assert {info.id: info.status for info in infos} == {
            name: expected.status for name, expected in self.model.items()
        }

    def teardown(self) -> None:
        try:
            self.rig.engine.become_reachable()
            self.run(self._remove_all())
            assert self.rig.held() == set()
            assert list((self.root / "data" / "sandboxes").iterdir()) == []
        finally:
            self.rig.close()
            self.runner.close()
            shutil.rmtree(self.root)

    async def _remove_all(self) -> None:
        async def connected() -> bool:
            return (await self.manager.pools())[0].connected

        await until(connected)
        for info in await self.manager.list():
            try:
                await self.manager.remove(info.uid)
            except NotFoundError:
                pass  # the reaper was faster
        await self.manager.close()

    # -- the model -----------------------------------------------------------------------------------------------------

    def _refusal(self, expected: Expected | None) -> type[SandboxError] | tuple[type[SandboxError], ...] | None:
        if expected is None:
            return NotFoundError
        if expected.doomed:
            return (NotRunningError, NotFoundError)
        if expected.status is not Status.RUNNING:
            return NotRunningError
        return None if self.reachable else RuntimeUnavailableError

    def _command_ended(self, name: str, expected: Expected) -> None:
        expected.used = self.now
        if expected.lifecycle is Lifecycle.ONE_SHOT and not expected.doomed:
            if self.reachable:
                self._forget(name)
            else:
                expected.doomed, expected.status = True, Status.FAILED

    def _lose_command(self, name: str, expected: Expected) -> None:
        """The sandbox ended under its command."""
        if expected.stream is None:
            return
        stream, expected.stream = expected.stream, None
        self.run(stream.aclose())
        self._command_ended(name, expected)

    def _forget(self, name: str) -> None:
        expected = self.model.pop(name, None)
        if expected is not None and expected.stream is not None:
            self.run(expected.stream.aclose())

    def _forget_if_gone(self, name: str) -> None:
        if name not in [info.id for info in self.run(self.manager.list())]:
            self._forget(name)

    def _environment(self, name: str) -> str | None:
        if name not in self.model or self.model[name].doomed:
            return None
        runtime_id = self.run(self.manager.get(name)).last_info.runtime_id
        return runtime_id if runtime_id in self.rig.engine.environments else None

    async def _as_expected(self) -> bool:
        return {info.id: info.status for info in await self.manager.list()} == {
            name: expected.status for name, expected in self.model.items()
        }


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "FIRST_RETRY", 0.01)
    monkeypatch.setattr(following, "LAST_RETRY", 0.05)


TestManagerModel = ManagerModel.TestCase
TestManagerModel.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
