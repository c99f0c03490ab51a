"""The runtime of the tests: environments in memory, commands as real processes of this host, no isolation at all."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import ClassVar

from yaosb_jupyter.choices import Network, Status
from yaosb_jupyter.errors import (
    AlreadyExistsError,
    CommandNotFoundError,
    ImageNotFoundError,
    InvalidOptionError,
    NotAvailableError,
    NotFoundError,
    NotRunningError,
)
from yaosb_jupyter.guest.beneath import DIRECTORY
from yaosb_jupyter.guest.removal import remove_tree
from yaosb_jupyter.options import ExecOptions
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.runtimes.base import (
    Capability,
    EnvironmentEvent,
    EnvironmentSpec,
    EnvironmentState,
    ExecStream,
    Runtime,
    RuntimeInfo,
)
from yaosb_jupyter.tai.runtimes.memory.command import Command, NotStarted
from yaosb_jupyter.tai.runtimes.memory.engine import Environment, MemoryEngine, Subscription
from yaosb_jupyter.tai.runtimes.memory.launch import Launch, prepare
from yaosb_jupyter.tai.runtimes.memory.mainprocess import MainProcess, last_lines
from yaosb_jupyter.tai.runtimes.memory.processes import Process, find, gone, kill_all, lookup, send_all
from yaosb_jupyter.tai.sockets import connect
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.tai.volumes.local import LocalVolume
from yaosb_jupyter.types import Isolation, LogChunk, PullProgress, SandboxStats

_ISOLATION = Isolation(**dict.fromkeys(Isolation.__dataclass_fields__, "none: tests"))
_IMAGE_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]|/(?=[a-z0-9]))*(?::[A-Za-z0-9._-]+)?")
_SAMPLE_SECONDS = 0.1
_FOLLOW_SECONDS = 0.05


class MemoryRuntime(Runtime):
    """Environments of a `MemoryEngine`. Limits and networks are accepted and not applied."""

    kind: ClassVar[str] = "memory"

    def __init__(self, engine: MemoryEngine | None = None) -> None:
        self.engine = engine or MemoryEngine()

    async def open(self) -> RuntimeInfo:
        async with self.engine.call("open"):
            return RuntimeInfo(
                kind=self.kind,
                version="1",
                is_local=True,
                shared_files=True,
                isolation=_ISOLATION,
                default_network=Network.BRIDGE,
                default_image="memory",
                capabilities=frozenset({Capability.DIAL, Capability.IMAGES}),
            )

    async def create(self, spec: EnvironmentSpec) -> str:
        async with self.engine.call("create"):
            if not self._has_image(spec.image):
                raise ImageNotFoundError(f"no such image: {spec.image!r}")
            if any(other.spec.name == spec.name for other in self.engine.environments.values()):
                raise AlreadyExistsError(f"the engine has an environment named {spec.name!r} already")
            environment = Environment(runtime_id=secrets.token_hex(32), spec=spec)
            self.engine.environments[environment.runtime_id] = environment
            self.engine.publish(environment, Status.CREATED)
            return environment.runtime_id

    async def start(self, runtime_id: str) -> None:
        async with self.engine.call("start"):
            environment = self.engine.get(runtime_id)
            if environment.status is Status.RUNNING:
                return
            if environment.status is Status.REMOVING:
                raise NotFoundError(f"environment {runtime_id[:12]} is being removed", hint="create a new one")
            environment.status, environment.reason, environment.exit_code = Status.RUNNING, "", None
            environment.runs += 1
            if environment.spec.cmd and environment.spec.cmd != ("image",):
                await in_thread(self._start_main, environment)
            self.engine.publish(environment, Status.RUNNING)

    async def stop(self, runtime_id: str, timeout: float) -> None:
        async with self.engine.call("stop"):
            environment = self.engine.get(runtime_id)
            if environment.status not in (Status.RUNNING, Status.STOPPING):
                return
            environment.status = Status.STOPPING
            try:
                await _terminate_main(environment, timeout)
                await in_thread(self.engine.end, environment, exit_code=0)
            finally:
                if environment.status is Status.STOPPING:  # we were cancelled
                    environment.status = Status.RUNNING

    async def remove(self, runtime_id: str) -> None:
        async with self.engine.call("remove"):
            if environment := self.engine.environments.get(runtime_id):
                await in_thread(self.engine.discard, environment)

    async def exec_stream(self, runtime_id: str, options: ExecOptions) -> ExecStream:
        if options.tty is not None:
            raise NotAvailableError("the memory runtime has no terminals", sandbox=runtime_id, hint="leave tty out")
        async with self.engine.call("exec_stream"):
            environment = self._running(runtime_id)
            runs = environment.runs
            try:
                launch = prepare(environment, options.argv, cwd=options.cwd, env=options.env, user=options.user)
                process = await _started(launch, stdin=options.stdin)
            except CommandNotFoundError as error:
                return NotStarted(error)
            command = Command(process, mark=launch.tree, timeout=options.timeout, lost=lambda: _lost(environment))
            if environment.status is not Status.RUNNING or environment.runs != runs:
                await command.cancel(0)
                self._running(runtime_id)
            return command

    async def dial(self, runtime_id: str, port: int) -> ByteStream:
        async with self.engine.call("dial"):
            environment = self._running(runtime_id)
            return await connect(port, sandbox=environment.spec.name)

    async def kill_processes(self, runtime_id: str, pattern: str, grace: float = 2.0) -> Sequence[int]:
        async with self.engine.call("kill_processes"):
            environment = self._running(runtime_id)
            try:
                wanted = re.compile(pattern)
            except re.error as error:
                raise InvalidOptionError(f"pattern={pattern!r} is not a regular expression: {error}") from error
            found = await asyncio.to_thread(_matching, environment, wanted)
            await asyncio.to_thread(send_all, found, signal.SIGTERM)
            if not await gone(found, grace):
                await asyncio.to_thread(send_all, found, signal.SIGKILL)
                await gone(found, grace)
            return [process.pid for process in found]

    async def inspect(self, runtime_id: str) -> EnvironmentState:
        async with self.engine.call("inspect"):
            return self.engine.get(runtime_id).state()

    async def list(self, labels: Mapping[str, str]) -> Sequence[EnvironmentState]:
        async with self.engine.call("list"):
            return [
                environment.state()
                for environment in self.engine.environments.values()
                if labels.items() <= environment.spec.labels.items()
            ]

    async def take_up(self, state: EnvironmentState) -> None:
        """Nothing to do: what runs here runs in this process."""

    async def stats(self, runtime_id: str) -> SandboxStats:
        async with self.engine.call("stats"):
            environment = self._running(runtime_id)
            before = {process.pid: process.ticks for process in await asyncio.to_thread(find, environment.mark)}
            await asyncio.sleep(_SAMPLE_SECONDS)
            after = await asyncio.to_thread(find, environment.mark)
            ticks = sum(process.ticks - before.get(process.pid, 0) for process in after)
            return SandboxStats(
                cpu_percent=100 * ticks / os.sysconf("SC_CLK_TCK") / _SAMPLE_SECONDS,
                memory=sum(process.resident_pages for process in after) * os.sysconf("SC_PAGE_SIZE"),
                memory_limit=environment.spec.memory,
                pids=sum(process.threads for process in after),
            )

    async def logs(
        self, runtime_id: str, *, follow: bool = False, tail: int | None = None, since: datetime | None = None
    ) -> AsyncIterator[LogChunk]:
        async with self.engine.call("logs"):
            environment = self.engine.get(runtime_id)
            pieces, position = environment.log.since(0)
            if since is not None:
                pieces = [piece for piece in pieces if piece.at >= since]
            if tail is not None:
                pieces = last_lines(pieces, tail)
        while True:
            running = (
                environment.status is Status.RUNNING
            )  # looked at first: what it wrote before its end is read after
            for piece in pieces:
                yield LogChunk(channel=piece.channel, data=piece.data)
            pieces, position = environment.log.since(position)
            if not pieces:
                if not (follow and running):
                    return
                await asyncio.sleep(_FOLLOW_SECONDS)  # the thread that writes the log knows no loop

    def events(self) -> AsyncIterator[EnvironmentEvent]:
        return self._events(self.engine.subscribe())

    async def _events(self, subscription: Subscription) -> AsyncIterator[EnvironmentEvent]:
        try:
            while (event := await subscription.queue.get()) is not None:
                yield event
            raise self.engine.unreachable()
        finally:
            self.engine.unsubscribe(subscription)

    def volume(self, spec: EnvironmentSpec, runtime_id: str) -> LocalVolume:  # noqa: ARG002 - one directory a spec
        return LocalVolume(spec.workspace, sandbox=spec.uid)

    async def remove_workspace(self, spec: EnvironmentSpec) -> None:
        await in_thread(_remove_directory, spec)

    async def image_exists(self, image: str) -> bool:
        async with self.engine.call("image_exists"):
            return self._has_image(image)

    async def pull_image(self, image: str, progress: Callable[[PullProgress], None] | None = None) -> None:
        async with self.engine.call("pull_image"):
            if not _IMAGE_NAME.fullmatch(image):
                raise InvalidOptionError(f"image={image!r} is not valid", hint="accepted: NAME:TAG in small letters")
            if not self._has_image(image):
                raise ImageNotFoundError(f"no such image: {image!r}")
            if progress is not None:
                progress(PullProgress(layer="layer", status="Pull complete", current=1, total=1))

    async def close(self) -> None:
        pass

    def _has_image(self, image: str) -> bool:
        return self.engine.images is None or image in self.engine.images

    def _running(self, runtime_id: str) -> Environment:
        environment = self.engine.get(runtime_id)
        if environment.status is not Status.RUNNING:
            raise NotRunningError(f"environment {runtime_id[:12]} is {environment.status}", hint="start it")
        return environment

    def _start_main(self, environment: Environment) -> None:
        spec, runs = environment.spec, environment.runs
        try:
            process = prepare(environment, spec.cmd).start()
        except CommandNotFoundError as error:
            self.engine.end(environment, exit_code=error.exit_code, reason=error.message)
            raise

        def on_exit(code: int) -> None:
            if environment.runs == runs:
                ours = environment.status is Status.STOPPING
                reason = "" if ours else f"the main process ended with code {code}"
                self.engine.end(environment, exit_code=code, reason=reason)

        environment.main = MainProcess(process, log=environment.log, on_exit=on_exit)


async def _started(launch: Launch, *, stdin: bool) -> subprocess.Popen[bytes]:
    """The process, or none at all when this is cancelled."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        await in_thread(lambda: started.append(launch.start(stdin=stdin)))
    except asyncio.CancelledError:
        for process in started:
            with process:
                await in_thread(kill_all, launch.tree)
        raise
    return started[0]


def _lost(environment: Environment) -> str | None:
    return "the environment was removed" if environment.status in (Status.REMOVING, Status.REMOVED) else None


async def _terminate_main(environment: Environment, timeout: float) -> None:
    if environment.main is None or (main := await asyncio.to_thread(lookup, environment.main.pid)) is None:
        return
    await asyncio.to_thread(main.send, signal.SIGTERM)
    await gone([main], timeout)


def _matching(environment: Environment, wanted: re.Pattern[str]) -> Sequence[Process]:
    main = environment.main.pid if environment.main else None
    return [
        process for process in find(environment.mark) if process.pid != main and wanted.search(process.command_line())
    ]


def _remove_directory(spec: EnvironmentSpec) -> None:
    with suppress(FileNotFoundError):
        parent = os.open(spec.workspace.parent, DIRECTORY)
        try:
            remove_tree(parent, spec.workspace.name)
        finally:
            os.close(parent)
