"""The engine behind memory runtimes: what is in it outlives a runtime, as containers outlive a client of Docker's.

Tests make things fail through it: the next call of a kind, the whole engine, one environment.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from yaosb_jupyter.choices import Status
from yaosb_jupyter.errors import NotFoundError, RuntimeUnavailableError, SandboxError
from yaosb_jupyter.tai.runtimes.base import EnvironmentEvent, EnvironmentSpec, EnvironmentState
from yaosb_jupyter.tai.runtimes.memory.mainprocess import Log, MainProcess
from yaosb_jupyter.tai.runtimes.memory.processes import kill_all


@dataclass(kw_only=True)
class Environment:
    """One environment of the engine. ``runs`` counts its starts."""

    runtime_id: str
    spec: EnvironmentSpec
    status: Status = Status.CREATED
    reason: str = ""
    exit_code: int | None = None
    runs: int = 0
    main: MainProcess | None = None
    log: Log = field(default_factory=Log)
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def mark(self) -> bytes:
        """What all its processes carry in their environment."""
        return f"YAOSB_ENVIRONMENT={self.runtime_id}".encode()

    def state(self) -> EnvironmentState:
        return EnvironmentState(
            runtime_id=self.runtime_id,
            name=self.spec.name,
            status=self.status,
            labels=dict(self.spec.labels),
            image=self.spec.image,
            reason=self.reason,
            exit_code=self.exit_code,
            ports=self.spec.ports,
            link="engine",
            created_at=self.created_at,
        )


@dataclass(frozen=True, kw_only=True)
class _Fault:
    error: SandboxError
    after: bool


class Subscription:
    """Events for one loop, from any thread; None says that the engine went away."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.queue: asyncio.Queue[EnvironmentEvent | None] = asyncio.Queue()

    def put(self, event: EnvironmentEvent | None) -> None:
        with suppress(RuntimeError):  # its loop was closed without a word
            self._loop.call_soon_threadsafe(self.queue.put_nowait, event)


class MemoryEngine:
    """Hand one to several `MemoryRuntime` to test what a restart finds again.

    ``images`` the names that exist, None for any; ``delays`` seconds that a kind of call (``create``, ``start``, ...)
    takes longer. Calls of the fault hooks block for some milliseconds.
    """

    def __init__(self, *, images: set[str] | None = None) -> None:
        self.environments: dict[str, Environment] = {}
        self.images = images
        self.delays: dict[str, float] = {}
        self._faults: dict[str, list[_Fault]] = {}
        self._unreachable = ""
        self._subscriptions: set[Subscription] = set()
        self._lock = threading.RLock()

    def fail_next(self, operation: str, error: SandboxError | None = None, *, after: bool = False) -> None:
        """Makes the next ``create``, ``start``, ``stop``, ``remove``, ``exec_stream``, ``list`` ... fail.

        ``after``: it is done all the same, and only the answer is lost.
        """
        fault = _Fault(error=error or RuntimeUnavailableError(f"{operation} failed as the test asked"), after=after)
        self._faults.setdefault(operation, []).append(fault)

    def become_unreachable(self, reason: str = "the engine does not answer") -> None:
        """From now on every call fails, and every stream of events ends; what runs goes on."""
        self._unreachable = reason
        for subscription in self._subscriptions:
            subscription.put(None)

    def become_reachable(self) -> None:
        self._unreachable = ""

    def vanish(self, runtime_id: str) -> None:
        """Kills and removes an environment behind its runtime's back."""
        self.discard(self.environments[runtime_id], reason="removed by another")

    def die(self, runtime_id: str, reason: str = "out of memory") -> None:
        """Ends an environment behind its runtime's back; it stays, stopped."""
        self.end(self.environments[runtime_id], exit_code=137, reason=reason)

    def close(self) -> None:
        """Kills all that runs."""
        for environment in list(self.environments.values()):
            self.end(environment, exit_code=137, reason="the engine was closed")

    def get(self, runtime_id: str) -> Environment:
        """Raises `NotFoundError`."""
        try:
            return self.environments[runtime_id]
        except KeyError:
            raise NotFoundError(
                f"environment {runtime_id} is not on the engine", hint="it was removed; create a new one"
            ) from None

    def end(self, environment: Environment, *, exit_code: int | None, reason: str = "") -> None:
        """Stopped from now on, with all its processes killed. No-op when it is not running. Blocks."""
        with self._lock:
            if environment.status not in (Status.RUNNING, Status.STOPPING):
                return
            environment.status, environment.reason, environment.exit_code = Status.STOPPED, reason, exit_code
        kill_all(environment.mark)
        self.publish(environment, Status.STOPPED, reason)

    def discard(self, environment: Environment, *, reason: str = "") -> None:
        """Kills and forgets. Blocks."""
        environment.status = Status.REMOVING
        kill_all(environment.mark)
        self.environments.pop(environment.runtime_id, None)
        environment.status = Status.REMOVED
        self.publish(environment, Status.REMOVED, reason)

    def publish(self, environment: Environment, status: Status, reason: str = "") -> None:
        event = EnvironmentEvent(runtime_id=environment.runtime_id, status=status, reason=reason)
        for subscription in list(self._subscriptions):
            subscription.put(event)

    def subscribe(self) -> Subscription:
        self.check_reachable()
        subscription = Subscription()
        self._subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)

    def check_reachable(self) -> None:
        """Raises `RuntimeUnavailableError` when the test wants it."""
        if self._unreachable:
            raise self.unreachable()

    def unreachable(self) -> RuntimeUnavailableError:
        return RuntimeUnavailableError(self._unreachable or "the engine went away", hint="memory engine")

    @asynccontextmanager
    async def call(self, operation: str) -> AsyncIterator[None]:
        """Around every call of a runtime: delays, faults, and whether the engine answers at all."""
        self.check_reachable()
        if delay := self.delays.get(operation):
            await asyncio.sleep(delay)
            self.check_reachable()
        faults = self._faults.get(operation)
        fault = faults.pop(0) if faults else None
        if fault is not None and not fault.after:
            raise fault.error
        yield
        if fault is not None:
            raise fault.error


_engines: dict[str, MemoryEngine] = {}


def named_engine(name: str) -> MemoryEngine:
    """The engine of ``memory://name`` in this process."""
    return _engines.setdefault(name, MemoryEngine())
