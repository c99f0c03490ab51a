"""The Docker runtime: `Runtime` over the parts of this package."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar, final

from yaosb_jupyter.choices import Network
from yaosb_jupyter.errors import (
    NotAvailableError,
    RuntimeUnavailableError,
    SandboxError,
    SandboxLostError,
)
from yaosb_jupyter.images.catalogue import DESKTOP
from yaosb_jupyter.link.commands import GuestCommands
from yaosb_jupyter.link.kill import check_pattern, kill_matching
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
from yaosb_jupyter.tai.runtimes.docker import probe
from yaosb_jupyter.tai.runtimes.docker.accounts import Accounts
from yaosb_jupyter.tai.runtimes.docker.address import resolve
from yaosb_jupyter.tai.runtimes.docker.archive import ArchiveVolume
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.environments import Environments
from yaosb_jupyter.tai.runtimes.docker.events import EventHub
from yaosb_jupyter.tai.runtimes.docker.exec import start_exec
from yaosb_jupyter.tai.runtimes.docker.failures import unreachable
from yaosb_jupyter.tai.runtimes.docker.guests import Guests
from yaosb_jupyter.tai.runtimes.docker.images import DEFAULT_IMAGE, Images
from yaosb_jupyter.tai.runtimes.docker.interpreters import Interpreters
from yaosb_jupyter.tai.runtimes.docker.isolation import isolation_of
from yaosb_jupyter.tai.runtimes.docker.lifecycle import Lifecycle
from yaosb_jupyter.tai.runtimes.docker.logs import read_logs
from yaosb_jupyter.tai.runtimes.docker.network import OwnNetwork
from yaosb_jupyter.tai.runtimes.docker.options import DockerOptions
from yaosb_jupyter.tai.runtimes.docker.processes import Processes
from yaosb_jupyter.tai.runtimes.docker.published import dial_published
from yaosb_jupyter.tai.runtimes.docker.spec import UID_LABEL, LinkKind, working_directory
from yaosb_jupyter.tai.runtimes.docker.state import inspected, listed
from yaosb_jupyter.tai.runtimes.docker.stats import StatsReader
from yaosb_jupyter.tai.runtimes.docker.terminal import start_terminal
from yaosb_jupyter.tai.runtimes.docker.throwaway import sweep
from yaosb_jupyter.tai.runtimes.docker.volume import EngineVolume, SharedVolume
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.types import CommandInfo, Isolation, LogChunk, PullProgress, SandboxStats

_log = logging.getLogger(__name__)

_ANSWER_SECONDS = 3.0
_PROBE_SECONDS = 4.0
_MAX_PROBE_IMAGES = 4


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """What works once the engine has answered."""

    lifecycle: Lifecycle
    environments: Environments
    guests: Guests
    images: Images
    processes: Processes
    events: EventHub
    stats: StatsReader
    info: RuntimeInfo
    facts: probe.EngineFacts


@final
class DockerRuntime(Runtime):
    """Environments are containers of the engine at ``address`` (see `address.resolve`).

    ``services`` can be reached from inside.
    """

    kind: ClassVar[str] = "docker"

    def __init__(
        self, address: str, options: Mapping[str, str], runtime_dir: Path, services: Services = NO_SERVICES
    ) -> None:
        self._options = DockerOptions.parse(options)
        self._services = services
        self._address = address
        self._runtime_dir = runtime_dir
        self._engine_open: Engine | None = None
        self._parts_open: _Parts | None = None
        self._shared = False

    async def open(self) -> RuntimeInfo:
        address = await asyncio.to_thread(resolve, self._address, self._options, environ=os.environ, home=Path.home())
        engine = Engine(address)
        try:
            facts = await _ask(engine)
            parts = await self._assemble(engine, facts)
        except BaseException:
            await engine.close()
            raise
        self._engine_open, self._parts_open = engine, parts
        self._shared = parts.info.shared_files
        return parts.info

    async def _assemble(self, engine: Engine, facts: probe.EngineFacts) -> _Parts:
        shared = self._options.shared_files
        if shared is None:
            shared = not facts.remapped and await probe.shares_files(engine, self._runtime_dir)
        network = OwnNetwork(engine)
        images = Images(engine)
        environments = Environments(engine)
        accounts = Accounts(engine, facts, self._options.uid_range, shared=shared)
        events = EventHub(engine)
        guests = Guests(engine, environments, events, self._services)
        reach, _, _ = await asyncio.gather(self._reach(engine, network, facts), events.open(), sweep(engine))
        info = RuntimeInfo(
            kind=self.kind,
            version=facts.version,
            is_local=engine.address.is_local,
            shared_files=shared,
            isolation=probe.isolation(facts, reach, shared=shared, own_uids=accounts.own_uids),
            default_network=Network.BRIDGE,
            default_image=DEFAULT_IMAGE,
            capabilities=probe.capabilities(facts, guest=self._options.guest),
        )
        lifecycle = Lifecycle(
            engine=engine,
            accounts=accounts,
            images=images,
            network=network,
            environments=environments,
            interpreters=Interpreters(engine, facts.engine_id),
            guests=guests,
            shared=shared,
            guest=self._options.guest,
            swap_limit=facts.swap,
        )
        guests.open()
        return _Parts(
            lifecycle=lifecycle,
            environments=environments,
            guests=guests,
            images=images,
            processes=Processes(engine),
            events=events,
            stats=StatsReader(engine),
            info=info,
            facts=facts,
        )

    async def _reach(self, engine: Engine, network: OwnNetwork, facts: probe.EngineFacts) -> probe.Reach:
        """What was not probed in time is told so."""
        with suppress(SandboxError, TimeoutError):
            async with asyncio.timeout(_PROBE_SECONDS):
                await network.ensure()
                images = [self._options.probe_image, DEFAULT_IMAGE, *await probe.local_images(engine)]
                chosen = tuple(dict.fromkeys(image for image in images if image))[:_MAX_PROBE_IMAGES]
                return await probe.probe_reach(engine, facts, chosen)
        return probe.Reach()

    @property
    def _engine(self) -> Engine:
        if self._engine_open is None:
            raise RuntimeUnavailableError("the Docker runtime is not open")
        return self._engine_open

    @property
    def _parts(self) -> _Parts:
        if self._parts_open is None:
            raise RuntimeUnavailableError("the Docker runtime is not open")
        return self._parts_open

    async def create(self, spec: EnvironmentSpec) -> str:
        return await self._parts.lifecycle.create(spec)

    async def isolation(self, spec: EnvironmentSpec, runtime_id: str) -> Isolation:
        parts = self._parts
        uid = (await parts.environments.get(runtime_id)).uid
        engine = parts.facts
        return isolation_of(
            parts.info.isolation,
            spec,
            uid=uid,
            container=probe.container(engine),
            inner_root=engine.rootless or engine.remapped,
        )

    async def start(self, runtime_id: str) -> None:
        await self._parts.lifecycle.start(runtime_id)

    async def stop(self, runtime_id: str, timeout: float) -> None:
        self._parts.events.expect_end(runtime_id)
        await self._parts.lifecycle.stop(runtime_id, timeout)

    async def remove(self, runtime_id: str) -> None:
        self._parts.events.expect_end(runtime_id)
        self._parts.stats.forget(runtime_id)
        await self._parts.lifecycle.remove(runtime_id)

    async def exec_stream(self, runtime_id: str, options: ExecOptions) -> ExecStream:
        """By the guest, for its own user; else by the engine."""
        facts = await self._parts.environments.get(runtime_id)
        if options.user in ("", str(facts.uid)) and (link := await self._parts.guests.link(runtime_id)) is not None:
            kill = functools.partial(self._kill, runtime_id)
            return await link.commands.exec(options, cwd=options.cwd, env={**facts.env, **options.env}, kill=kill)
        start = start_exec if options.tty is None else start_terminal
        return await start(
            self._engine,
            self._parts.processes,
            runtime_id,
            options,
            cwd=working_directory(facts.workdir, options.cwd),
            env={**facts.env, **options.env},
        )

    async def _kill(self, runtime_id: str) -> None:
        """Ends a container whose guest does not keep to the rules."""
        _log.warning("a command in %s did not end: killing the container", runtime_id)
        with suppress(SandboxError):  # gone already, or not to be reached: then its guest goes on alone
            await self._engine.call(lambda client: client.kill(runtime_id), sandbox=runtime_id)

    async def spawn(self, runtime_id: str, options: ExecOptions) -> CommandInfo:
        facts = await self._parts.environments.get(runtime_id)
        if options.user not in ("", str(facts.uid)):
            raise NotAvailableError(
                "only its own user's commands can run in the background", sandbox=runtime_id, hint="leave user out"
            )
        commands = await self._commands(runtime_id)
        return await commands.spawn(options, cwd=options.cwd, env={**facts.env, **options.env})

    async def commands(self, runtime_id: str) -> Sequence[CommandInfo]:
        return await (await self._commands(runtime_id)).list()

    async def attach(
        self, runtime_id: str, command_id: str, since: int | None = 0, *, holds: bool = False
    ) -> ExecStream:
        commands = await self._commands(runtime_id)
        kill = functools.partial(self._kill, runtime_id)
        return await commands.attach(command_id, since=since, kill=kill, holds=holds)

    async def control(
        self,
        runtime_id: str,
        command_id: str,
        *,
        signal: int | None = None,
        grace: float | None = None,
        size: TerminalSize | None = None,
    ) -> None:
        commands = await self._commands(runtime_id)
        await commands.control(command_id, signal=signal, grace=grace, size=size)

    async def _commands(self, runtime_id: str) -> GuestCommands:
        link = await self._parts.guests.link(runtime_id)
        if link is None:
            raise NotAvailableError(
                "its image has no python3, without which commands cannot be taken up again",
                sandbox=runtime_id,
                hint="keep their streams: stream()",
            )
        return link.commands

    async def dial(self, runtime_id: str, port: int) -> ByteStream:
        link = await self._parts.guests.link(runtime_id)
        if link is not None:
            return await link.dial(port)
        published = None
        if self._engine.address.is_local:
            published = await dial_published(await self.inspect(runtime_id), port, sandbox=runtime_id)
        return published or await super().dial(runtime_id, port)

    async def kill_processes(self, runtime_id: str, pattern: str, grace: float = 2.0) -> Sequence[int]:
        """By the guest where it is the main process, which sees all; by the engine what that may not end."""
        check_pattern(pattern)
        killed: Sequence[int] = ()
        if (await self._parts.environments.get(runtime_id)).guest_main:
            with suppress(SandboxLostError):
                link = await self._parts.guests.link(runtime_id)
                if link is not None:
                    told = await kill_matching(link, pattern, grace, sandbox=runtime_id)
                    if told.all_gone:
                        return told.pids
                    killed = told.pids
        others = await self._parts.processes.end_matching(runtime_id, pattern, grace)
        return sorted({*killed, *others})

    async def inspect(self, runtime_id: str) -> EnvironmentState:
        found = await self._engine.call(lambda client: client.inspect_container(runtime_id), sandbox=runtime_id)
        return inspected(found)

    async def list(self, labels: Mapping[str, str]) -> Sequence[EnvironmentState]:
        wanted = [UID_LABEL, *(f"{key}={value}" for key, value in labels.items())]
        found = await self._engine.call(lambda client: client.containers(all=True, filters={"label": wanted}))
        return [listed(each) for each in found]

    async def take_up(self, state: EnvironmentState) -> None:
        if state.link != LinkKind.ENGINE:
            self._parts.guests.note(state.runtime_id, state.status)

    async def stats(self, runtime_id: str) -> SandboxStats:
        return await self._parts.stats.read(runtime_id)

    def logs(
        self, runtime_id: str, *, follow: bool = False, tail: int | None = None, since: datetime | None = None
    ) -> AsyncIterator[LogChunk]:
        return read_logs(self._engine, runtime_id, follow=follow, tail=tail, since=since)

    def events(self) -> AsyncIterator[EnvironmentEvent]:
        return self._parts.events.listen()

    def volume(self, spec: EnvironmentSpec, runtime_id: str) -> Volume:
        if self._shared:  # its files can be reached while the runtime is not open
            return SharedVolume(spec.workspace, functools.partial(self._archive, runtime_id), runtime_id)
        link = functools.partial(self._parts.guests.link, runtime_id)
        return EngineVolume(link, self._archive(runtime_id), sandbox=runtime_id)

    def _archive(self, runtime_id: str) -> ArchiveVolume:
        return ArchiveVolume(self._engine, self._parts.environments, runtime_id)

    async def remove_workspace(self, spec: EnvironmentSpec) -> None:
        await self._parts.lifecycle.remove_workspace(spec)

    async def vnc_port(self, runtime_id: str) -> int:
        return (await self._parts.environments.get(runtime_id)).vnc_port

    async def default_image(self, *, desktop: bool) -> str:
        return DESKTOP.short_name if desktop else await self._parts.images.default()

    async def image_exists(self, image: str) -> bool:
        return await self._parts.images.exists(image)

    async def pull_image(self, image: str, progress: Callable[[PullProgress], None] | None = None) -> None:
        await self._parts.images.pull(image, progress)

    async def close(self) -> None:
        engine, parts = self._engine_open, self._parts_open
        self._engine_open = self._parts_open = None
        if parts is not None:
            await parts.guests.close()
            await parts.events.close()
        if engine is not None:
            await engine.close()


async def _ask(engine: Engine) -> probe.EngineFacts:
    """Connects. An engine that hangs takes connections, and may even tell its version, without ever answering."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            await engine.open()
            return probe.EngineFacts.of(await engine.call(lambda client: client.info()))
    except TimeoutError as error:
        raise unreachable(engine.address, f"no answer within {_ANSWER_SECONDS:g} s") from error
