"""The engine's event stream: one connection, any number of listeners."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any
from weakref import WeakSet

from yaosb_jupyter.choices import Status
from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.tai.runtimes.base import EnvironmentEvent
from yaosb_jupyter.tai.runtimes.docker.address import EngineAddress
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.failures import unreachable
from yaosb_jupyter.tai.runtimes.docker.spec import UID_LABEL
from yaosb_jupyter.tai.runtimes.docker.state import OUT_OF_MEMORY, ended_reason

_ACTIONS = ("create", "start", "restart", "die", "oom", "pause", "unpause", "destroy")
_FILTERS = json.dumps({"type": ["container"], "event": list(_ACTIONS), "label": [UID_LABEL]})
_STATUS = {
    "create": Status.CREATED,
    "start": Status.RUNNING,
    "restart": Status.RUNNING,
    "oom": Status.RUNNING,
    "pause": Status.PAUSED,
    "unpause": Status.RUNNING,
    "die": Status.STOPPED,
    "destroy": Status.REMOVED,
}
_MAX_WAITING = 10_000
_MAX_REMEMBERED = 1_000


class Interpreter:
    """Makes events of the engine's messages; remembers which containers ran out of memory, and which we end."""

    def __init__(self) -> None:
        self._out_of_memory: OrderedDict[str, None] = OrderedDict()
        self._ours: set[str] = set()

    def expect_end(self, runtime_id: str) -> None:
        """Its next end is by our own call and needs no reason."""
        self._ours.add(runtime_id)

    def event(self, message: Mapping[str, Any]) -> EnvironmentEvent | None:
        action, actor = message.get("Action", ""), message.get("Actor", {})
        runtime_id = str(actor.get("ID", ""))
        status = _STATUS.get(action)
        if status is None or not runtime_id:
            return None
        return EnvironmentEvent(
            runtime_id=runtime_id, status=status, reason=self._reason(action, runtime_id, actor.get("Attributes", {}))
        )

    def _reason(self, action: str, runtime_id: str, attributes: Mapping[str, str]) -> str:
        if action == "oom":
            self._out_of_memory[runtime_id] = None
            if len(self._out_of_memory) > _MAX_REMEMBERED:
                self._out_of_memory.popitem(last=False)
            return OUT_OF_MEMORY
        if action == "destroy":
            ours = runtime_id in self._ours
            self._forget(runtime_id)
            return "" if ours else "the container was removed by someone else"
        if action != "die":
            self._ours.discard(runtime_id)
            return ""
        if runtime_id in self._ours:
            return ""
        if runtime_id in self._out_of_memory:
            return OUT_OF_MEMORY
        code = int(attributes.get("exitCode") or 0)
        return ended_reason(code) or "the main process ended"

    def _forget(self, runtime_id: str) -> None:
        self._ours.discard(runtime_id)
        self._out_of_memory.pop(runtime_id, None)


class EventHub:
    """Reads the engine's events and hands them to all listeners, from the moment they asked."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._interpreter = Interpreter()
        self._listeners: WeakSet[Listener] = WeakSet()
        self._task: asyncio.Task[None] | None = None
        self._listening = asyncio.Event()
        self._failure: SandboxError | None = None

    def expect_end(self, runtime_id: str) -> None:
        self._interpreter.expect_end(runtime_id)

    async def open(self) -> None:
        """Returns when the engine's events arrive here. Raises `RuntimeUnavailableError`."""
        if self._task is None or self._task.done():
            self._listening.clear()
            self._failure = None
            self._task = asyncio.create_task(self._read())
        listening = asyncio.ensure_future(self._listening.wait())
        try:
            await asyncio.wait([listening, self._task], return_when=asyncio.FIRST_COMPLETED)
        finally:
            listening.cancel()
        if self._task.done() and self._failure is not None:
            raise self._failure

    def listen(self) -> AsyncIterator[EnvironmentEvent]:
        listener = Listener(self.open, self._listeners.discard, self._engine.address)
        self._listeners.add(listener)
        return listener

    async def _read(self) -> None:
        try:
            async with self._engine.stream("GET", self._engine.target("events", filters=_FILTERS)) as response:
                self._listening.set()
                async for line in response.lines():
                    event = self._interpreter.event(json.loads(line)) if line.strip() else None
                    if event is not None:
                        self._tell(event)
            raise unreachable(self._engine.address, "its event stream ended")
        except SandboxError as error:
            self._failure = error
            self._tell(error)

    def _tell(self, event: EnvironmentEvent | SandboxError) -> None:
        for listener in tuple(self._listeners):
            listener.put(event)

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        self._tell(unreachable(self._engine.address, "the pool was closed"))


class Listener(AsyncIterator[EnvironmentEvent]):
    """One reader of the events; one that does not keep up is told that it has missed some."""

    def __init__(
        self, open_hub: Callable[[], Awaitable[None]], leave: Callable[[Listener], None], address: EngineAddress
    ) -> None:
        self._open_hub = open_hub
        self._leave = leave
        self._address = address
        self._queue: asyncio.Queue[EnvironmentEvent | SandboxError] = asyncio.Queue(_MAX_WAITING)

    def put(self, event: EnvironmentEvent | SandboxError) -> None:
        if self._queue.full():
            self._queue.get_nowait()
            event = unreachable(self._address, "its events came faster than they were read")
        self._queue.put_nowait(event)

    async def __anext__(self) -> EnvironmentEvent:
        if self._queue.empty():
            await self._open_hub()
        event = await self._queue.get()
        if isinstance(event, SandboxError):
            raise event
        return event

    async def aclose(self) -> None:
        """Listens no more."""
        self._leave(self)
