"""The `Service` of one caller: finds what the caller may see, and hands on to the parts of the manager."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from yaosb_jupyter.core.entry import Entry
from yaosb_jupyter.core.naming import naming
from yaosb_jupyter.core.service import Caller, Progress, Service
from yaosb_jupyter.core.state import State
from yaosb_jupyter.core.view import matches, sandbox_info
from yaosb_jupyter.errors import PermissionDeniedError
from yaosb_jupyter.options import CreateOptions, ExecOptions, TerminalSize
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.runtimes.base import ExecStream
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.types import (
    CommandInfo,
    Desktop,
    ListFilter,
    LogChunk,
    PoolInfo,
    PoolSpec,
    ProxyHealth,
    SandboxInfo,
    SandboxStats,
)

if TYPE_CHECKING:
    from yaosb_jupyter.core.controller import Controller


class CallerService(Service):
    """See `Service`. `close` lets go of nothing: the controller is its owner's."""

    def __init__(self, controller: Controller, state: State, caller: Caller) -> None:
        self._controller = controller
        self._state = state
        self._caller = caller

    async def create(self, options: CreateOptions, progress: Progress | None = None) -> SandboxInfo:
        entry, warnings = await self._controller.creator.create(options, self._caller, progress)
        return self._info(entry, warnings)

    async def get_or_create(self, options: CreateOptions, progress: Progress | None = None) -> SandboxInfo:
        entry, warnings = await self._controller.creator.get_or_create(options, self._caller, progress)
        return self._info(entry, warnings)

    async def get(self, ref: str) -> SandboxInfo:
        entry = self._find(ref)
        told = self._info(entry)
        return replace(told, vnc_status=(await self._controller.usage.desktop(entry))[0]) if told.vnc else told

    async def list(self, filter: ListFilter) -> Sequence[SandboxInfo]:
        if filter.owner and filter.owner != self._caller.owner:
            self._admin_only(f"list the sandboxes of {filter.owner!r}")
        mine = self._caller.owner
        entries = [
            entry
            for entry in self._state.table
            if (self._caller.admin or entry.record.owner == mine) and matches(entry, filter)
        ]
        entries.sort(key=lambda entry: (entry.record.created_at, entry.uid))
        return [self._info(entry) for entry in entries]

    async def start(self, ref: str) -> SandboxInfo:
        with self._sandbox(ref) as entry:
            await self._controller.operations.start(entry)
        return self._info(entry)

    async def stop(self, ref: str, timeout: float | None = None) -> SandboxInfo:
        with self._sandbox(ref) as entry:
            await self._controller.operations.stop(entry, timeout)
        return self._info(entry)

    async def remove(self, ref: str) -> None:
        with self._sandbox(ref) as entry:
            await self._controller.remover.remove(entry)

    async def exec_stream(self, ref: str, options: ExecOptions) -> ExecStream:
        with self._sandbox(ref) as entry:
            return await self._controller.usage.exec_stream(entry, options)

    async def dial(self, ref: str, port: int) -> ByteStream:
        with self._sandbox(ref) as entry:
            return await self._controller.usage.dial(entry, port)

    async def proxy(self, ref: str, port: int, path: str = "/") -> str:
        with self._sandbox(ref) as entry:
            return await self._controller.usage.proxy(entry, port, path)

    async def vnc(self, ref: str) -> Desktop:
        with self._sandbox(ref) as entry:
            return await self._controller.usage.vnc(entry)

    async def proxy_healthz(self) -> ProxyHealth:
        return await self._state.proxy.healthz()

    async def spawn(self, ref: str, options: ExecOptions) -> CommandInfo:
        with self._sandbox(ref) as entry:
            return await self._controller.usage.spawn(entry, options)

    async def commands(self, ref: str) -> Sequence[CommandInfo]:
        with self._sandbox(ref) as entry:
            return await self._controller.usage.commands(entry)

    async def attach(self, ref: str, command_id: str, since: int | None = 0, *, holds: bool = False) -> ExecStream:
        with self._sandbox(ref) as entry:
            return await self._controller.usage.attach(entry, command_id, since, holds=holds)

    async def control(
        self,
        ref: str,
        command_id: str,
        *,
        signal: int | None = None,
        grace: float | None = None,
        size: TerminalSize | None = None,
    ) -> None:
        with self._sandbox(ref) as entry:
            await self._controller.usage.control(entry, command_id, signal=signal, grace=grace, size=size)

    async def kill_process(self, ref: str, pattern: str) -> Sequence[int]:
        with self._sandbox(ref) as entry:
            return await self._controller.usage.kill_process(entry, pattern)

    async def heartbeat(self, ref: str, *, active: bool, process_count: int) -> None:
        self._controller.usage.heartbeat(self._find(ref), active=active, process_count=process_count)

    async def stats(self, ref: str) -> SandboxStats:
        with self._sandbox(ref) as entry:
            return await self._controller.usage.stats(entry)

    def logs(
        self, ref: str, *, follow: bool = False, tail: int | None = None, since: datetime | None = None
    ) -> AsyncIterator[LogChunk]:
        return self._controller.usage.logs(self._find(ref), follow=follow, tail=tail, since=since)

    def volume(self, ref: str) -> Volume:
        return self._controller.usage.volume(self._find(ref))

    async def cleanup(self) -> Sequence[str]:
        self._admin_only("clean up")
        return await self._controller.reaper.sweep()

    async def pools(self) -> Sequence[PoolInfo]:
        return self._controller.pooling.infos()

    async def add_pool(self, spec: PoolSpec) -> PoolInfo:
        self._admin_only("add pools")
        return await self._controller.pooling.add(spec)

    async def remove_pool(self, name: str, *, force: bool = False) -> None:
        self._admin_only("remove pools")
        await self._controller.pooling.remove(name, force=force)

    async def image_exists(self, image: str, pool: str = "") -> bool:
        return await self._controller.pooling.image_exists(image, pool)

    async def pull_image(self, image: str, pool: str = "", progress: Progress | None = None) -> None:
        await self._controller.pooling.pull_image(image, pool, progress)

    async def close(self) -> None:
        """Nothing to let go of."""

    def _find(self, ref: str) -> Entry:
        return self._state.table.find(ref, self._caller)

    @contextmanager
    def _sandbox(self, ref: str) -> Iterator[Entry]:
        """The one of that name; what goes wrong with it is told under its id."""
        entry = self._find(ref)
        with naming(entry):
            yield entry

    def _info(self, entry: Entry, warnings: tuple[str, ...] = ()) -> SandboxInfo:
        return sandbox_info(entry, self._state.pool_of(entry), self._state.clock.now(), warnings)

    def _admin_only(self, what: str) -> None:
        if not self._caller.admin:
            raise PermissionDeniedError(f"only an admin may {what}", hint="ask whoever runs the manager")
