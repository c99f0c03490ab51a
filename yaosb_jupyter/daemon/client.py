"""The `Service` that passes everything to the daemon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from typing import Any

from yaosb_jupyter.core.service import Progress, Service
from yaosb_jupyter.core.tasks import Tasks
from yaosb_jupyter.daemon import requests as ask
from yaosb_jupyter.daemon.command import RemoteExecStream, control, new_id
from yaosb_jupyter.daemon.defaults import with_defaults
from yaosb_jupyter.daemon.dial import dial
from yaosb_jupyter.daemon.line import Line, OnMessage, read_value, told
from yaosb_jupyter.daemon.volume import RemoteVolume, read_data
from yaosb_jupyter.link.stream import RemoteError, Stream
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
    PullProgress,
    SandboxInfo,
    SandboxStats,
)
from yaosb_jupyter.wire.codec import from_json

_UNDO_PATIENCE = 60.0


class RemoteService(Service):
    """See `Service`. ``defaults`` fill the fields that a ``create`` leaves open."""

    def __init__(self, line: Line, defaults: CreateOptions) -> None:
        self._line = line
        self._defaults = defaults
        self._tasks = Tasks()

    async def create(self, options: CreateOptions, progress: Progress | None = None) -> SandboxInfo:
        request = ask.Create(options=with_defaults(options, self._defaults))
        stream = await self._line.open(request)
        with told(request):
            try:
                return from_json(SandboxInfo, await read_value(stream, _teller(progress)))
            except asyncio.CancelledError:
                stream.cancel()
                self._tasks.forget(self._undo(stream), "undoing a creation that was cancelled")
                raise

    async def _undo(self, stream: Stream) -> None:
        """The cancellation may have come too late: then there is a sandbox that nobody knows of."""
        try:
            async with asyncio.timeout(_UNDO_PATIENCE):
                info = from_json(SandboxInfo, await read_value(stream))
        except (RemoteError, ConnectionError):
            return  # it came in time, or the daemon ends and its lifecycle applies
        await self.remove(info.uid)

    async def get_or_create(self, options: CreateOptions, progress: Progress | None = None) -> SandboxInfo:
        request = ask.GetOrCreate(options=with_defaults(options, self._defaults))
        return await self._line.call(SandboxInfo, request, _teller(progress))

    async def get(self, ref: str) -> SandboxInfo:
        return await self._line.call(SandboxInfo, ask.Get(ref=ref))

    async def list(self, filter: ListFilter) -> Sequence[SandboxInfo]:
        return await self._line.items(SandboxInfo, ask.List(filter=filter))

    async def start(self, ref: str) -> SandboxInfo:
        return await self._line.call(SandboxInfo, ask.Start(ref=ref))

    async def stop(self, ref: str, timeout: float | None = None) -> SandboxInfo:
        return await self._line.call(SandboxInfo, ask.Stop(ref=ref, timeout=timeout))

    async def remove(self, ref: str) -> None:
        await self._line.call(type(None), ask.Remove(ref=ref))

    async def exec_stream(self, ref: str, options: ExecOptions) -> ExecStream:
        return await RemoteExecStream.begin(self._line, ask.Exec(ref=ref, options=options))

    async def dial(self, ref: str, port: int) -> ByteStream:
        return await dial(self._line, ask.Dial(ref=ref, port=port))

    async def proxy(self, ref: str, port: int, path: str = "/") -> str:
        return await self._line.call(str, ask.Proxy(ref=ref, port=port, path=path))

    async def vnc(self, ref: str) -> Desktop:
        return await self._line.call(Desktop, ask.Vnc(ref=ref))

    async def proxy_healthz(self) -> ProxyHealth:
        return await self._line.call(ProxyHealth, ask.ProxyHealthz())

    async def spawn(self, ref: str, options: ExecOptions) -> CommandInfo:
        chosen = replace(options, id=options.id or new_id())
        return await self._line.call(CommandInfo, ask.Spawn(ref=ref, options=chosen))

    async def commands(self, ref: str) -> Sequence[CommandInfo]:
        return await self._line.items(CommandInfo, ask.Commands(ref=ref))

    async def attach(self, ref: str, command_id: str, since: int | None = 0, *, holds: bool = False) -> ExecStream:
        request = ask.Attach(ref=ref, command_id=command_id, since=since, holds=holds)
        return await RemoteExecStream.attach(self._line, request)

    async def control(
        self,
        ref: str,
        command_id: str,
        *,
        signal: int | None = None,
        grace: float | None = None,
        size: TerminalSize | None = None,
    ) -> None:
        await control(self._line, ref, command_id, signal=signal, grace=grace, size=size)

    async def kill_process(self, ref: str, pattern: str) -> Sequence[int]:
        return await self._line.call(tuple[int, ...], ask.KillProcess(ref=ref, pattern=pattern))

    async def heartbeat(self, ref: str, *, active: bool, process_count: int) -> None:
        request = ask.Heartbeat(ref=ref, active=active, process_count=process_count)
        await self._line.call(type(None), request)

    async def stats(self, ref: str) -> SandboxStats:
        return await self._line.call(SandboxStats, ask.Stats(ref=ref))

    async def logs(
        self, ref: str, *, follow: bool = False, tail: int | None = None, since: datetime | None = None
    ) -> AsyncIterator[LogChunk]:
        request = ask.Logs(ref=ref, follow=follow, tail=tail, since=since)
        async with aclosing(read_data(self._line, request)) as pieces:
            async for channel, data in pieces:
                yield LogChunk(channel=channel, data=data)

    def volume(self, ref: str) -> Volume:
        return RemoteVolume(self._line, ref)

    async def cleanup(self) -> Sequence[str]:
        return await self._line.call(tuple[str, ...], ask.Cleanup())

    async def pools(self) -> Sequence[PoolInfo]:
        return await self._line.items(PoolInfo, ask.Pools())

    async def add_pool(self, spec: PoolSpec) -> PoolInfo:
        return await self._line.call(PoolInfo, ask.AddPool(spec=spec))

    async def remove_pool(self, name: str, *, force: bool = False) -> None:
        await self._line.call(type(None), ask.RemovePool(name=name, force=force))

    async def image_exists(self, image: str, pool: str = "") -> bool:
        return await self._line.call(bool, ask.ImageExists(image=image, pool=pool))

    async def pull_image(self, image: str, pool: str = "", progress: Progress | None = None) -> None:
        await self._line.call(type(None), ask.PullImage(image=image, pool=pool), _teller(progress))

    async def close(self) -> None:
        await self._tasks.close(_UNDO_PATIENCE)
        await self._line.close()


def _teller(progress: Progress | None) -> OnMessage | None:
    if progress is None:
        return None

    def tell(message: dict[str, Any]) -> None:
        progress(from_json(PullProgress, message.get("progress")))

    return tell
