"""One environment: its start, its end, and the link to its guest."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from yaosb_jupyter.choices import Status
from yaosb_jupyter.errors import CommandNotFoundError, NotRunningError, RuntimeUnavailableError, SandboxLostError
from yaosb_jupyter.link.door import SocketDoor
from yaosb_jupyter.link.guest import GuestLink
from yaosb_jupyter.link.services import NO_SERVICES, GuestServices, Services
from yaosb_jupyter.tai.runtimes.base import EnvironmentEvent, EnvironmentState
from yaosb_jupyter.tai.runtimes.embedded import launch
from yaosb_jupyter.tai.runtimes.embedded.cgroups import Limits
from yaosb_jupyter.tai.runtimes.embedded.handles import ProcessHandle, ProcessName, boot_id
from yaosb_jupyter.tai.runtimes.embedded.host import EmbeddedHost
from yaosb_jupyter.tai.runtimes.embedded.inhabitants import Inhabitants
from yaosb_jupyter.tai.runtimes.embedded.logs import MainLog
from yaosb_jupyter.tai.runtimes.embedded.plan import Places, mark, plan
from yaosb_jupyter.tai.runtimes.embedded.record import EnvironmentRecord
from yaosb_jupyter.tai.runtimes.embedded.watcher import keep_memory_below
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.types import LogChunk, SandboxStats

log = logging.getLogger(__name__)

REAP_TIMEOUT = 2.0
SETTLE = 0.2
"""How long a start waits for the end of a main process that ends at once."""
SAMPLE = 0.1


class Running:
    """What there is of an environment only while it runs. ``child`` where this process started it."""

    def __init__(self, inhabitants: Inhabitants, link: GuestLink, child: subprocess.Popen[bytes] | None) -> None:
        self.inhabitants = inhabitants
        self.link = link
        self.child = child
        self.watch: asyncio.Future[None] | None = None
        self.keeper: asyncio.Future[None] | None = None


class Environment:
    """The controller of one environment. Its record on disk is the truth; what is held here can be found again."""

    def __init__(self, record: EnvironmentRecord, host: EmbeddedHost, services: Services = NO_SERVICES) -> None:
        self.record = record
        self._host = host
        self._services = services
        self._lock = asyncio.Lock()
        self._running: Running | None = None
        self._log = MainLog()
        self._sample: tuple[float, float] | None = None

    # What is told

    def state(self) -> EnvironmentState:
        record = self.record
        if self._running is not None:
            status = Status.STOPPING if record.stopping else Status.RUNNING
        else:
            status = Status.CREATED if record.process is None else Status.STOPPED
        stopped = status is Status.STOPPED
        return EnvironmentState(
            runtime_id=record.runtime_id,
            name=record.spec.name,
            status=status,
            labels=record.spec.labels,
            image=record.spec.image,
            reason=record.reason if stopped else "",
            exit_code=record.exit_code if stopped else None,
            link="socket",
            created_at=record.created_at,
        )

    def link(self) -> GuestLink:
        """Raises `NotRunningError`."""
        if self._running is None:
            state = self.state()
            message = f"it is {state.status}: {state.reason}" if state.reason else f"it is {state.status}"
            raise NotRunningError(message, sandbox=self.record.spec.name, hint="start the sandbox first")
        return self._running.link

    async def stats(self) -> SandboxStats:
        """Raises `NotRunningError`."""
        self.link()
        loop = asyncio.get_running_loop()
        if self._sample is None or loop.time() - self._sample[0] < SAMPLE:
            self._sample = loop.time(), (await self._usage()).cpu_time
            await asyncio.sleep(SAMPLE)
        began, before = self._sample
        usage = await self._usage()
        now = loop.time()
        self._sample = now, usage.cpu_time
        return SandboxStats(
            cpu_percent=max(0.0, 100 * (usage.cpu_time - before) / max(now - began, 0.001)),
            memory=usage.memory,
            memory_limit=self.record.spec.memory,
            pids=usage.pids,
        )

    async def _usage(self) -> Any:
        self.link()
        assert self._running is not None
        try:
            return await in_thread(self._running.inhabitants.usage)
        except OSError as error:
            raise SandboxLostError("it ended meanwhile", sandbox=self.record.spec.name) from error

    def logs(self, *, follow: bool, tail: int | None, since: datetime | None) -> AsyncIterator[LogChunk]:
        return self._log.read(follow=follow, tail=tail, since=since)

    # Start

    async def start(self) -> None:
        """No-op when running. Raises `RuntimeUnavailableError` with what its guest complained of."""
        async with self._lock:
            if self._running is not None:
                return
            link = self._new_link()
            launched: list[launch.Launched] = []
            try:
                await in_thread(self._prepare)
                await link.listen()
                await in_thread(lambda: launched.append(self._launch()))
                await self._meet(link, launched[0])
            except BaseException:
                await self._undo(link, launched)
                raise
            running = Running(self._inhabitants(launched[0].guest), link, launched[0].child)
            self._host.tell(EnvironmentEvent(runtime_id=self.record.runtime_id, status=Status.RUNNING))
            self._took(running)
        if self.record.spec.cmd and running.watch is not None:
            await asyncio.wait([running.watch], timeout=SETTLE)

    def _prepare(self) -> None:
        spec, places = self.record.spec, self._places
        self._host.files.restore()
        places.link_directory.mkdir(exist_ok=True, mode=0o755)
        places.link_directory.chmod(0o755)
        for directory in (places.temporary.parent, places.temporary):
            directory.mkdir(parents=True, exist_ok=True)
        if self.record.user is not None:
            shutil.chown(places.temporary, *self.record.user)
        if not spec.workspace.is_dir():
            raise RuntimeUnavailableError(
                f"its workspace {spec.workspace} is gone", sandbox=spec.name, hint="remove the sandbox"
            )

    def _launch(self) -> launch.Launched:
        record, host = self.record, self._host
        spec = record.spec
        group = host.cgroups.make(spec.uid) if host.cgroups is not None else None
        if group is not None:
            # One more for the guest itself, which is not the user's.
            group.limit(Limits(memory=spec.memory, cpus=spec.cpus, pids=spec.pids and spec.pids + 1))
        planned = plan(record, host.means, host.view, self._places, bwrap=host.bwrap, grouped=group is not None)
        launched = launch.start(planned, host.store.log(spec.uid), host.launchers)
        try:
            if planned.stage:
                host.launchers.refill()  # while the guest starts, which takes longer
            if group is not None:
                group.add(launched.guest.name.pid)
            self._save(process=launched.guest.name, stopping=False, reason="", exit_code=None)
            launched.begin({**planned.config, "services": list(self._services)})
        except BaseException:
            launched.guest.close()
            launch.end(launched.child)
            raise
        return launched

    async def _meet(self, link: GuestLink, launched: launch.Launched) -> None:
        """Until commands can be run."""
        meeting = asyncio.ensure_future(link.connected(launch.START_TIMEOUT))
        ending = asyncio.ensure_future(launched.guest.ended())
        try:
            await asyncio.wait([meeting, ending], return_when=asyncio.FIRST_COMPLETED)
            if meeting.done():
                await meeting
                return
        except SandboxLostError as error:
            name = self.record.spec.name
            raise RuntimeUnavailableError(f"the sandbox did not start: {error.message}", sandbox=name) from error
        finally:
            for task in (meeting, ending):
                task.cancel()
            await asyncio.wait([meeting, ending])
        code = await _reaped(launched.child)
        reason = await asyncio.to_thread(launch.complaint, self._host.store.log(self.record.runtime_id))
        if self.record.spec.cmd and code in (126, 127):
            raise CommandNotFoundError(reason, exit_code=code, sandbox=self.record.spec.name)
        raise RuntimeUnavailableError(f"the sandbox ended while it started: {reason}", sandbox=self.record.spec.name)

    async def _undo(self, link: GuestLink, launched: list[launch.Launched]) -> None:
        await link.close()
        for one in launched:
            await in_thread(self._inhabitants(one.guest).kill)
            one.guest.close()
            await in_thread(launch.end, one.child)
        await in_thread(self._clear)
        if launched:
            await in_thread(lambda: self._save(reason="it could not be started"))

    # Finding it again

    async def refresh(self, record: EnvironmentRecord) -> None:
        """``record`` is what is on disk now: another runtime over the same directory may have started it."""
        if self._running is None and not self._lock.locked() and record.process != self.record.process:
            self.record = record
            await self.find()

    async def find(self) -> None:
        """Sees what an earlier daemon, or another pool, left running; or notes why it ended."""
        name = self.record.process
        guest = await in_thread(ProcessHandle.find, name) if name is not None else None
        if guest is not None:
            self._took(Running(self._inhabitants(guest), self._new_link(), None))
        elif name is not None and not self.record.stopping and not self.record.reason:
            await in_thread(lambda: self._save(reason=_end_unseen(name)))

    async def take_up(self) -> None:
        """Lets the guest that was found come in here, unless it is served by another process."""
        if self._running is None:
            return
        try:
            await self._running.link.listen(unless_served=True)
        except RuntimeUnavailableError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            # Its directory went when it ended, which is seen here in a moment.

    def _took(self, running: Running) -> None:
        self._running = running
        self._log.begin()
        running.watch = asyncio.ensure_future(self._watch(running))
        if self._host.cgroups is None and self.record.spec.memory:
            running.keeper = asyncio.ensure_future(keep_memory_below(self.record.spec.memory, running.inhabitants))

    async def _watch(self, running: Running) -> None:
        """Waits for its end, however it comes, and clears up behind it."""
        try:
            await running.inhabitants.guest.ended()
        finally:
            if running.keeper is not None:
                running.keeper.cancel()
        exit_code = await _reaped(running.child)
        usage = None
        with contextlib.suppress(OSError):
            usage = await in_thread(running.inhabitants.usage)
        if not running.inhabitants.contained:
            await in_thread(running.inhabitants.kill)
        await in_thread(self._save)  # was it stopped by the runtime of another pool?
        for_memory = usage is not None and usage.killed_for_memory > 0
        reason = "" if self.record.stopping else _end_seen(self.record, exit_code, for_memory=for_memory)
        await self._log.finished()
        await running.link.close(reason)
        if exit_code is not None or not self.record.reason:
            await in_thread(lambda: self._save(reason=reason, exit_code=exit_code))
        await in_thread(self._clear)
        running.inhabitants.guest.close()
        self._running = None
        self._sample = None
        event = EnvironmentEvent(runtime_id=self.record.runtime_id, status=Status.STOPPED, reason=reason)
        self._host.tell(event)

    # Its end

    async def stop(self, timeout: float) -> None:
        """SIGTERM to the guest, which passes it on; after ``timeout`` seconds SIGKILL. No-op when not running."""
        async with self._lock:
            running = self._running
            if running is None:
                return
            await in_thread(lambda: self._save(stopping=True))
            running.inhabitants.guest.signal(15)
            try:
                async with asyncio.timeout(timeout):
                    await self._ended(running)
            except TimeoutError:
                await self._kill(running)

    async def kill(self) -> None:
        """Ends all its processes now."""
        running = self._running
        if running is not None:
            await self._kill(running)

    async def remove(self) -> None:
        """Ends it, and forgets all but the workspace."""
        async with self._lock:
            running = self._running
            if running is not None:
                await in_thread(lambda: self._save(stopping=True))
                await self._kill(running)
            await in_thread(self._clear)
            await in_thread(self._host.store.remove, self.record.runtime_id)
        self._host.tell(EnvironmentEvent(runtime_id=self.record.runtime_id, status=Status.REMOVED))

    async def release(self) -> None:
        """Lets go of it; it goes on."""
        running, self._running = self._running, None
        await self._log.finished()
        if running is None:
            return
        if running.watch is not None:
            running.watch.cancel()
            await asyncio.wait([running.watch])
        await running.link.close()
        running.inhabitants.guest.close()
        if running.child is not None:
            launch.release(running.child)

    async def _kill(self, running: Running) -> None:
        await in_thread(running.inhabitants.kill)
        await self._ended(running)

    async def _ended(self, running: Running) -> None:
        assert running.watch is not None
        await asyncio.shield(running.watch)

    def _clear(self) -> None:
        """What the runtime made for one run."""
        if self._host.cgroups is not None:
            self._host.cgroups.group(self.record.runtime_id).remove()
        shutil.rmtree(self._places.link_directory, ignore_errors=True)
        shutil.rmtree(self._places.temporary, ignore_errors=True)

    # Small parts

    @property
    def _places(self) -> Places:
        return self._host.places(self.record)

    def _new_link(self) -> GuestLink:
        follow = self._log.follow if self.record.spec.cmd else None
        record = self.record
        services = GuestServices(self._services, record.spec.uid) if self._services else None
        door = SocketDoor(self._places.socket, sandbox=record.spec.name)
        return GuestLink(door, record.key, sandbox=record.spec.name, on_link=follow, services=services)

    def _inhabitants(self, guest: ProcessHandle) -> Inhabitants:
        host = self._host
        return Inhabitants(
            guest=guest,
            contained=host.means.contains_processes,
            user=None if self.record.user is None else self.record.user[0],
            mark=mark(self.record),
            group=host.cgroups.group(self.record.runtime_id) if host.cgroups is not None else None,
        )

    def _save(self, **changes: Any) -> None:
        """On top of what is on disk, where the runtime of another pool may have written meanwhile."""
        current = self._host.store.load(self.record.runtime_id)
        self.record = replace(current or self.record, **changes)
        if current is not None:  # else it was removed
            self._host.store.save(self.record)


async def _reaped(child: subprocess.Popen[bytes] | None) -> int | None:
    if child is None:
        return None
    try:
        return _shell_code(await asyncio.to_thread(child.wait, REAP_TIMEOUT))
    except subprocess.TimeoutExpired:
        log.warning("process %d outlives its sandbox", child.pid)
        return None


def _shell_code(code: int) -> int:
    return code if code >= 0 else 128 - code


def _end_seen(record: EnvironmentRecord, exit_code: int | None, *, for_memory: bool) -> str:
    if exit_code in (137, None):
        memory = " (it used more memory than it may)" if for_memory else ""
        return f"its processes were killed{memory}"
    if record.spec.cmd:
        return f"the main process ended with code {exit_code}"
    return f"its guest ended with code {exit_code}"


def _end_unseen(name: ProcessName) -> str:
    if name.boot != boot_id():
        return "the host was restarted"
    return "its processes ended while no manager watched"
