"""The runtime without an engine: sandboxes are processes of this host under the strongest confinement that works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from yaosb_jupyter.choices import Status
from yaosb_jupyter.errors import (
    AlreadyExistsError,
    CommandNotFoundError,
    NotFoundError,
    RuntimeUnavailableError,
)
from yaosb_jupyter.link.guest import new_key
from yaosb_jupyter.link.kill import kill_matching
from yaosb_jupyter.link.services import NO_SERVICES, Services
from yaosb_jupyter.options import ExecOptions, TerminalSize
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.runtimes.base import (
    EnvironmentEvent,
    EnvironmentSpec,
    EnvironmentState,
    ExecStream,
    Runtime,
    RuntimeInfo,
)
from yaosb_jupyter.tai.runtimes.embedded.checks import check_dial, check_spec, is_own_user
from yaosb_jupyter.tai.runtimes.embedded.environment import Environment
from yaosb_jupyter.tai.runtimes.embedded.host import EmbeddedHost
from yaosb_jupyter.tai.runtimes.embedded.notstarted import NotStarted
from yaosb_jupyter.tai.runtimes.embedded.options import EmbeddedOptions
from yaosb_jupyter.tai.runtimes.embedded.plan import working_directory
from yaosb_jupyter.tai.runtimes.embedded.probe import Probed, probe_host
from yaosb_jupyter.tai.runtimes.embedded.record import EnvironmentRecord
from yaosb_jupyter.tai.runtimes.embedded.workspace import make_workspace, remove_workspace
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.tai.volumes.local import LocalVolume
from yaosb_jupyter.types import CommandInfo, LogChunk, PullProgress, SandboxStats


class EmbeddedRuntime(Runtime):
    """Environments of this host.

    ``runtime_dir`` holds sockets, so it is short; ``state_dir`` what must outlive a restart of the host. ``services``
    can be reached from inside.
    """

    kind: ClassVar[str] = "embedded"

    def __init__(
        self,
        options: Mapping[str, str],
        runtime_dir: Path,
        state_dir: Path | None = None,
        services: Services = NO_SERVICES,
    ) -> None:
        self._options = EmbeddedOptions.of(options)
        self._runtime_dir = runtime_dir
        self._state_dir = state_dir or runtime_dir / "embedded"
        self._services = services
        self._environments: dict[str, Environment] = {}
        self._listeners: set[asyncio.Queue[EnvironmentEvent | None]] = set()
        self._probed: Probed | None = None

    @property
    def _host(self) -> EmbeddedHost:
        assert self._probed is not None, "the runtime is open"
        return self._probed.host

    async def open(self) -> RuntimeInfo:
        self._probed = await probe_host(self._options, self._runtime_dir, self._state_dir, self._tell)
        await self._find_new()
        return self._probed.info

    async def create(self, spec: EnvironmentSpec) -> str:
        check_spec(spec, self._host)
        await self._find_new()
        for other in self._environments.values():
            if spec.name == other.record.spec.name or spec.uid == other.record.runtime_id:
                raise AlreadyExistsError(f"an environment named {spec.name!r} exists already", sandbox=spec.name)
        made: list[EnvironmentRecord] = []
        try:
            await in_thread(lambda: made.append(self._make(spec)))
        except asyncio.CancelledError:
            for record in made:
                await in_thread(self._host.store.remove, record.runtime_id)
            raise
        except OSError as error:
            raise RuntimeUnavailableError(f"it could not be created: {error}", sandbox=spec.name) from error
        self._environments[spec.uid] = Environment(made[0], self._host, self._services)
        self._tell(EnvironmentEvent(runtime_id=spec.uid, status=Status.CREATED))
        return spec.uid

    def _make(self, spec: EnvironmentSpec) -> EnvironmentRecord:
        user = make_workspace(spec, self._options.uids)
        record = EnvironmentRecord(spec=spec, created_at=datetime.now(UTC), key=new_key(), user=user)
        self._host.store.save(record)
        return record

    async def start(self, runtime_id: str) -> None:
        await (await self._get(runtime_id)).start()

    async def stop(self, runtime_id: str, timeout: float) -> None:
        await (await self._get(runtime_id)).stop(timeout)

    async def remove(self, runtime_id: str) -> None:
        with suppress(NotFoundError):
            environment = await self._get(runtime_id)
            await environment.remove()
            self._environments.pop(runtime_id, None)

    async def exec_stream(self, runtime_id: str, options: ExecOptions) -> ExecStream:
        environment = await self._get(runtime_id)
        commands = environment.link().commands
        try:
            cwd, env = self._surroundings(environment, options)
        except CommandNotFoundError as error:
            return NotStarted(error)
        return await commands.exec(options, cwd=cwd, env=env, kill=environment.kill)

    async def spawn(self, runtime_id: str, options: ExecOptions) -> CommandInfo:
        environment = await self._get(runtime_id)
        commands = environment.link().commands
        cwd, env = self._surroundings(environment, options)
        return await commands.spawn(options, cwd=cwd, env=env)

    async def commands(self, runtime_id: str) -> Sequence[CommandInfo]:
        return await (await self._get(runtime_id)).link().commands.list()

    async def attach(
        self, runtime_id: str, command_id: str, since: int | None = 0, *, holds: bool = False
    ) -> ExecStream:
        environment = await self._get(runtime_id)
        commands = environment.link().commands
        return await commands.attach(command_id, since=since, kill=environment.kill, holds=holds)

    async def control(
        self,
        runtime_id: str,
        command_id: str,
        *,
        signal: int | None = None,
        grace: float | None = None,
        size: TerminalSize | None = None,
    ) -> None:
        commands = (await self._get(runtime_id)).link().commands
        await commands.control(command_id, signal=signal, grace=grace, size=size)

    def _surroundings(self, environment: Environment, options: ExecOptions) -> tuple[str, Mapping[str, str]]:
        """Working directory and environment of a command. Raises `CommandNotFoundError` for another user's."""
        record = environment.record
        if not is_own_user(options.user, self._host.means, record.user):
            message = f"user {options.user!r} is not known: an embedded sandbox has one user"
            hint = "leave user out, or use a pool with a Docker engine"
            raise CommandNotFoundError(message, exit_code=126, sandbox=record.spec.name, hint=hint)
        return working_directory(record, self._host.means, options.cwd), {**record.spec.env, **options.env}

    async def dial(self, runtime_id: str, port: int) -> ByteStream:
        environment = await self._get(runtime_id)
        link = environment.link()
        check_dial(environment.record.spec, self._host.means)
        return await link.dial(port)

    async def kill_processes(self, runtime_id: str, pattern: str, grace: float = 2.0) -> Sequence[int]:
        link = (await self._get(runtime_id)).link()
        return (await kill_matching(link, pattern, grace, sandbox=runtime_id)).pids

    async def inspect(self, runtime_id: str) -> EnvironmentState:
        return (await self._get(runtime_id)).state()

    async def list(self, labels: Mapping[str, str]) -> Sequence[EnvironmentState]:
        await self._find_new()
        states = [environment.state() for environment in self._environments.values()]
        return [state for state in states if labels.items() <= state.labels.items()]

    async def take_up(self, state: EnvironmentState) -> None:
        await self._get(state.runtime_id)

    async def stats(self, runtime_id: str) -> SandboxStats:
        return await (await self._get(runtime_id)).stats()

    async def logs(
        self, runtime_id: str, *, follow: bool = False, tail: int | None = None, since: datetime | None = None
    ) -> AsyncIterator[LogChunk]:
        environment = await self._get(runtime_id)
        async for chunk in environment.logs(follow=follow, tail=tail, since=since):
            yield chunk

    async def events(self) -> AsyncIterator[EnvironmentEvent]:
        queue: asyncio.Queue[EnvironmentEvent | None] = asyncio.Queue()
        self._listeners.add(queue)
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            self._listeners.discard(queue)

    def volume(self, spec: EnvironmentSpec, runtime_id: str) -> LocalVolume:
        environment = self._environments.get(runtime_id)
        return LocalVolume(
            spec.workspace, owner=environment.record.user if environment is not None else None, sandbox=spec.uid
        )

    async def remove_workspace(self, spec: EnvironmentSpec) -> None:
        await in_thread(remove_workspace, spec)

    async def image_exists(self, image: str) -> bool:  # noqa: ARG002 - every sandbox has the host's programs
        return True

    async def pull_image(self, image: str, progress: Callable[[PullProgress], None] | None = None) -> None:
        """Nothing to do: images mean nothing here."""

    async def close(self) -> None:
        environments, self._environments = list(self._environments.values()), {}
        await asyncio.gather(*(environment.release() for environment in environments))
        if self._probed is not None:
            await in_thread(self._host.launchers.close)
            await in_thread(self._tidy)
        for queue in self._listeners:
            queue.put_nowait(None)

    def _tidy(self) -> None:
        if not self._host.store.load_all():
            self._host.files.remove()

    # What is there

    async def _get(self, runtime_id: str) -> Environment:
        if runtime_id not in self._environments:
            await self._find_new()
        try:
            environment = self._environments[runtime_id]
        except KeyError:
            raise NotFoundError(f"no environment {runtime_id!r} is known here", sandbox=runtime_id) from None
        await environment.take_up()
        return environment

    async def _find_new(self) -> None:
        """Sees the environments on disk that this object did not make or start."""
        for record in await in_thread(self._host.store.load_all):
            if (known := self._environments.get(record.runtime_id)) is not None:
                await known.refresh(record)
                continue
            environment = self._environments[record.runtime_id] = Environment(record, self._host, self._services)
            await environment.find()

    def _tell(self, event: EnvironmentEvent) -> None:
        for queue in self._listeners:
            queue.put_nowait(event)
