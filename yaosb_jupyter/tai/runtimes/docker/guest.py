"""The guest of one container: what it is told at its start, and the link to it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from yaosb_jupyter.errors import (
    CommandNotFoundError,
    NotRunningError,
    RuntimeUnavailableError,
    SandboxError,
    SandboxLostError,
)
from yaosb_jupyter.link.door import Door, SocketDoor
from yaosb_jupyter.link.guest import GuestLink, new_key
from yaosb_jupyter.link.services import GuestServices, Services
from yaosb_jupyter.tai.runtimes.docker import workspace
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.environments import EnvironmentFacts
from yaosb_jupyter.tai.runtimes.docker.http import Connection
from yaosb_jupyter.tai.runtimes.docker.relay import RelayDoor, knock, reception
from yaosb_jupyter.tai.runtimes.docker.spec import GUEST_COMMAND, LINK_SOCKET, RUN_DIRECTORY, LinkKind
from yaosb_jupyter.tai.runtimes.docker.state import end_of
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.types import WORKDIR

log = logging.getLogger(__name__)

Step = Callable[[], Awaitable[None]]

START_SECONDS = 20.0
"""How long a guest has from its start to its link."""
PATIENCE = 3.0
"""How long a guest that runs has for coming back, before it is taken for one that was started by someone else."""


class ContainerGuest:
    """Known by a key, new with every start of ours, that is kept beside the sandbox's record and told on its stdin."""

    def __init__(self, engine: Engine, runtime_id: str, facts: EnvironmentFacts, services: Services) -> None:
        self._engine = engine
        self._runtime_id = runtime_id
        self._facts = facts
        self._services = services
        self._lock = asyncio.Lock()
        self._key = ""
        self._door: Door | None = None
        self._link: GuestLink | None = None
        self._telling: asyncio.Task[None] | None = None
        self._seeing: asyncio.Task[None] | None = None
        self._paused = False

    @property
    def paused(self) -> bool:
        """The engine says that it stands still."""
        return self._paused

    @paused.setter
    def paused(self, paused: bool) -> None:
        self._paused = paused
        if self._link is not None:
            self._link.resting = paused

    @property
    def is_up(self) -> bool:
        """Whether it can be asked at once."""
        return self._link is not None and self._link.is_up and not self.paused

    @property
    def expected(self) -> bool:
        """It is being started, or on its way."""
        return self._lock.locked() or (self._telling is not None and not self._telling.done())

    async def connected(self) -> GuestLink | None:
        """Its link; None where it is another process's, or its key was lost.

        Raises `NotFoundError`, `NotRunningError`, and `SandboxLostError` for a guest that does not answer.
        """
        if not self.is_up:
            await self._check_running()
            async with self._lock:
                if not await self._open():
                    return None
                await self._reached()
        return self._link

    async def find(self) -> None:
        """Lets it come in where it runs already; it is not waited for. Raises `RuntimeUnavailableError`."""
        async with self._lock:
            await self._open()

    async def start(self, begin: Step, *, renew: Step, proven: bool) -> None:
        """Starts the container whose main process it is; ``begin`` has the engine do it, and is a no-op when running.

        ``renew`` replaces its program by this version's, where it has run before. ``proven``: a guest was seen to work
        in this image, and is not waited for where it has no main process of its own. Cancelled meanwhile, the start
        goes on: one that was not told its line would be of no use. Raises `CommandNotFoundError`, or
        `RuntimeUnavailableError` with what it complained of.
        """
        await asyncio.shield(self._engine.in_background(self._start(begin, renew, proven)))

    async def _start(self, begin: Step, renew: Step, proven: bool) -> None:
        async with self._lock:
            state = await self._state()
            if state["Running"]:
                await begin()
                return
            if state["Status"] != "created":
                await renew()
            await self._renew_key()
            stdin = await self._stdin()
            try:
                await begin()
            except BaseException:
                await stdin.aclose()
                raise
            self._tell(stdin)
            if self._facts.cmd or not proven:
                await self._confirm()

    async def inject(self, renew: Step) -> None:
        """Starts it in a container that runs a main process of the image's."""
        async with self._lock:
            if not self.is_up:
                await renew()
                await self._renew_key()
                self._tell(await self._stdin())

    async def ended(self) -> None:
        """The container has stopped, by what was heard: nobody waits for its link any more."""
        async with self._lock:
            if self._link is None or (state := await self._state())["Running"]:
                return
            await self.release(end_of(state) or "it was stopped")

    async def release(self, reason: str = "") -> None:
        """Lets go of it; it goes on, unless it has ended for a ``reason``."""
        telling, self._telling = self._telling, None
        if telling is not None:
            telling.cancel()
            await asyncio.wait([telling])
        link, self._link, self._door = self._link, None, None
        if link is not None:
            await link.close(reason)

    # The link

    async def _open(self) -> bool:
        if self._link is None:
            key = await in_thread(workspace.load_key, self._facts.directory)
            if not key:
                return False
            self._set_link(key)
        assert self._link is not None
        assert self._door is not None
        await self._link.listen(unless_served=True)
        return self._door.is_open or self._link.is_up

    async def _renew_key(self) -> None:
        """A key of its own for this run: what was in the one before does not know it."""
        await self.release()
        key = new_key()
        await in_thread(workspace.save_key, self._facts.directory, key)
        self._set_link(key)
        if self._facts.link is LinkKind.SOCKET:
            assert self._link is not None
            await self._link.listen()

    def _set_link(self, key: str) -> None:
        if self._facts.link is LinkKind.SOCKET:
            path = workspace.run_directory(self._facts.directory) / LINK_SOCKET
            self._door = SocketDoor(path, sandbox=self._runtime_id)
        else:
            self._door = RelayDoor(self._engine, self._runtime_id, key)
        services = GuestServices(self._services, self._facts.directory.name) if self._services else None
        self._key = key
        self._link = GuestLink(self._door, key, sandbox=self._runtime_id, services=services, on_loss=self._see_to_it)
        self._link.resting = self._paused

    def _see_to_it(self) -> None:
        """Its commands wait for it to come back: one that was killed beside its main process is started again."""

        async def quietly() -> None:
            with suppress(SandboxError):
                await self.connected()

        if not self._facts.guest_main and (self._seeing is None or self._seeing.done()):
            self._seeing = self._engine.in_background(quietly())

    async def _reached(self) -> None:
        """Until it is there. One that someone else's start has made waits for its line, and is told again."""
        assert self._link is not None
        with suppress(SandboxLostError):
            await self._arrival(self._link, PATIENCE)
            return
        if self._telling is None or self._telling.done():
            self._tell(await self._stdin())
        await self._arrival(self._link, START_SECONDS)

    async def _arrival(self, link: GuestLink, patience: float) -> None:
        """No longer than the container runs. Raises `SandboxLostError`, `NotRunningError`."""
        meeting = asyncio.ensure_future(link.connected(patience))
        ending = asyncio.ensure_future(self._ended())
        try:
            await asyncio.wait([meeting, ending], return_when=asyncio.FIRST_COMPLETED)
            if not meeting.done() and ending.exception() is None:
                message = f"its main process ended with exit code {ending.result()}"
                raise NotRunningError(message, sandbox=self._runtime_id, hint="start the sandbox again")
            await meeting
        finally:
            for task in (meeting, ending):
                task.cancel()
            await asyncio.wait([meeting, ending])

    # What it is told

    def _line(self) -> bytes:
        facts = self._facts
        line = {
            "key": self._key,
            "workdir": facts.workdir,
            "workspace": WORKDIR,
            "starter": facts.starter if facts.guest_main else "",
            "cmd": list(facts.cmd),
            "env": dict(facts.env),
            "own_outputs": True,
            "inherits": not facts.guest_main,
            "services": list(self._services),
            "reception": reception(self._key),
            "knock": knock(self._key),
        }
        if facts.link is LinkKind.SOCKET:
            line["socket"] = f"{RUN_DIRECTORY}/{LINK_SOCKET}"
        return json.dumps(line).encode() + b"\n"

    async def _stdin(self) -> Connection:
        """A connection to its stdin; where it is not the main process, it is started by that."""
        engine, container = self._engine, self._runtime_id
        if self._facts.guest_main:
            target = engine.target("containers", container, "attach", stream="1", stdin="1")
            return await engine.upgrade(target, None, sandbox=container)
        argv = [*GUEST_COMMAND, self._facts.directory.name]
        made = await engine.call(
            lambda client: client.exec_create(container, argv, stdin=True, stdout=False, stderr=False),
            sandbox=container,
        )
        target = engine.target("exec", made["Id"], "start")
        return await engine.upgrade(target, {"Detach": False, "Tty": False}, sandbox=container)

    def _tell(self, stdin: Connection) -> None:
        self._telling = asyncio.create_task(self._told(stdin))

    async def _told(self, stdin: Connection) -> None:
        """Gives it its line, and hangs up when it has taken it."""
        assert self._link is not None
        try:
            await stdin.write(self._line())
            await self._link.connected(START_SECONDS)
        except (ConnectionError, SandboxError) as error:
            log.warning("the guest of %s did not come: %s", self._runtime_id, error)
        finally:
            await stdin.aclose()

    # The start, watched

    async def _confirm(self) -> None:
        """Until its main process runs, or could not be started."""
        assert self._link is not None
        meeting = asyncio.ensure_future(self._link.connected(START_SECONDS))
        ending = asyncio.ensure_future(self._ended())
        try:
            await asyncio.wait([meeting, ending], return_when=asyncio.FIRST_COMPLETED)
            if meeting.done() and meeting.exception() is None:
                return
            if not ending.done():
                raise RuntimeUnavailableError(
                    f"its guest did not come within {START_SECONDS:g} s",
                    sandbox=self._runtime_id,
                    hint="is the machine very busy? try again",
                )
            code = ending.result()
        finally:
            for task in (meeting, ending):
                task.cancel()
            await asyncio.wait([meeting, ending])
        if self._facts.cmd and code not in (126, 127):
            return  # it ran, and has ended
        reason = await self._last_words()
        if self._facts.cmd:
            raise CommandNotFoundError(reason, exit_code=code, sandbox=self._runtime_id, hint="check cmd")
        raise RuntimeUnavailableError(f"the sandbox ended while it started: {reason}", sandbox=self._runtime_id)

    async def _ended(self) -> int:
        """The container's exit code, when it has ended."""
        target = self._engine.target("containers", self._runtime_id, "wait")
        async with self._engine.stream("POST", target, sandbox=self._runtime_id) as response:
            return int(json.loads(b"".join([piece async for piece in response.chunks()]))["StatusCode"])

    async def _last_words(self) -> str:
        said = await self._engine.call(lambda client: client.logs(self._runtime_id, tail=1), sandbox=self._runtime_id)
        return bytes(said).decode(errors="replace").strip()[-500:] or "it gave no reason"

    # The container

    async def _state(self) -> Mapping[str, Any]:
        found = await self._engine.call(
            lambda client: client.inspect_container(self._runtime_id), sandbox=self._runtime_id
        )
        state: Mapping[str, Any] = found["State"]
        return state

    async def _check_running(self) -> None:
        state = await self._state()
        if not state["Running"] or state["Paused"]:
            raise NotRunningError(f"it is {state['Status']}", sandbox=self._runtime_id, hint="start the sandbox first")
