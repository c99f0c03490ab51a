"""`AsyncManager`: the sandboxes of one data directory, as programs use them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self, Unpack

from yaosb_jupyter.checks import check_text
from yaosb_jupyter.choices import Lifecycle, Status
from yaosb_jupyter.core.clock import Clock
from yaosb_jupyter.core.commands.command import CommandStream
from yaosb_jupyter.core.commands.execution import CommandLine, ExecFields, StreamFields
from yaosb_jupyter.core.controller import Controller
from yaosb_jupyter.core.pool import Host, Opener
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.core.service import Caller, Progress, Service
from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.options import CreateFields, CreateOptions
from yaosb_jupyter.settings import Settings, load_settings
from yaosb_jupyter.types import ExecResult, ListFilter, PoolInfo, PoolSpec, ProxyHealth, SandboxInfo
from yaosb_jupyter.units import DurationLike


class AsyncManager:
    """All that can be done with sandboxes. ``ref`` is a sandbox's id or uid.

    Made by `open`, which owns the data directory in this process, or over any `Service` (the daemon's).
    """

    def __init__(self, service: Service, *, on_close: Callable[[], Awaitable[None]] | None = None) -> None:
        self._service = service
        self._on_close = on_close

    @staticmethod
    def open(
        settings: Settings | None = None,
        *,
        opener: Opener | None = None,
        clock: Clock | None = None,
        **overrides: Any,
    ) -> Opening:
        """``async with AsyncManager.open() as manager``, or ``manager = await AsyncManager.open()`` and `close`.

        ``overrides`` are fields of `Settings`, in place of the environment's and the configuration file's. Raises
        `DataDirectoryBusyError`, `NotAvailableError` where no pool can be reached, `InvalidOptionError`.
        """
        return Opening(settings, opener, clock, overrides)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def create(
        self, id: str = "", /, *, progress: Progress | None = None, **fields: Unpack[CreateFields]
    ) -> AsyncSandbox:
        """A new sandbox, running unless ``start=False``; fields as in `CreateOptions`.

        ``progress`` is told of the image's pull. Raises `AlreadyExistsError`, `LimitExceededError`,
        `PoolNotFoundError`, `ImageNotFoundError`, `RuntimeUnavailableError`, `InvalidOptionError`. On failure and on
        cancellation nothing is left.
        """
        return self._handle(await self._service.create(CreateOptions.of(id, **fields), progress))

    async def get(self, ref: str) -> AsyncSandbox:
        """Raises `NotFoundError`, for another owner's too."""
        return self._handle(await self._service.get(_named(ref)))

    async def get_or_create(
        self, id: str = "", /, *, progress: Progress | None = None, **fields: Unpack[CreateFields]
    ) -> AsyncSandbox:
        """The sandbox of that id, else of that (owner, chat), started if it was stopped; else a new one.

        ``last_info.warnings`` names fields that were asked for and differ from the existing sandbox's.
        """
        return self._handle(await self._service.get_or_create(CreateOptions.of(id, **fields), progress))

    async def list(
        self,
        *,
        owner: str = "",
        status: Status | str | None = None,
        lifecycle: Lifecycle | str | None = None,
        pool: str = "",
        labels: Mapping[str, str] | None = None,
    ) -> Sequence[SandboxInfo]:
        """Those that match all that is given, by time of creation."""
        return await self._service.list(
            ListFilter(
                owner=owner,
                status=None if status is None else Status.of(status, "status"),
                lifecycle=None if lifecycle is None else Lifecycle.of(lifecycle, "lifecycle"),
                pool=pool,
                labels=labels or {},
            )
        )

    async def start(self, ref: str) -> SandboxInfo:
        return await (await self.get(ref)).start()

    async def stop(self, ref: str, timeout: DurationLike | None = None) -> SandboxInfo:
        return await (await self.get(ref)).stop(timeout)

    async def remove(self, ref: str) -> None:
        await self._service.remove(_named(ref))

    async def exec(self, ref: str, command: CommandLine, **fields: Unpack[ExecFields]) -> ExecResult[str]:
        """See `AsyncSandbox.exec`, which also gives bytes and calls back."""
        return await (await self.get(ref)).exec(command, **fields)

    async def stream(self, ref: str, command: CommandLine, **fields: Unpack[StreamFields]) -> CommandStream[str]:
        """See `AsyncSandbox.stream`."""
        return (await self.get(ref)).stream(command, **fields)

    async def kill_process(self, ref: str, pattern: str) -> Sequence[int]:
        return await (await self.get(ref)).kill_process(pattern)

    async def heartbeat(self, ref: str, *, active: bool, process_count: int = 0) -> None:
        await (await self.get(ref)).heartbeat(active=active, process_count=process_count)

    async def cleanup(self) -> Sequence[str]:
        """Applies the lifecycles now; returns the ids of what was stopped or removed."""
        return await self._service.cleanup()

    async def pools(self) -> Sequence[PoolInfo]:
        """The first is the default. Those that left the configuration while they had sandboxes are among them."""
        return await self._service.pools()

    async def add_pool(self, spec: PoolSpec) -> PoolInfo:
        """Raises `AlreadyExistsError`, and what keeps it from being reached."""
        return await self._service.add_pool(spec)

    async def remove_pool(self, name: str, *, force: bool = False) -> None:
        """Raises `PoolInUseError` where it has sandboxes, unless ``force``, which removes them too."""
        await self._service.remove_pool(name, force=force)

    async def image_exists(self, image: str, *, pool: str = "") -> bool:
        return await self._service.image_exists(image, pool)

    async def pull_image(self, image: str, *, pool: str = "", progress: Progress | None = None) -> None:
        await self._service.pull_image(image, pool, progress)

    async def proxy_healthz(self) -> ProxyHealth:
        """That the proxy behind `AsyncSandbox.proxy` answers, and its address. Raises `UnavailableError`."""
        return await self._service.proxy_healthz()

    async def close(self) -> None:
        """Lets go; sandboxes go on."""
        await self._service.close()
        if self._on_close is not None:
            await self._on_close()

    def _handle(self, info: SandboxInfo) -> AsyncSandbox:
        return AsyncSandbox(self._service, info)


class Opening:
    """A manager about to be opened: awaited, or entered with ``async with``."""

    def __init__(
        self, settings: Settings | None, opener: Opener | None, clock: Clock | None, overrides: Mapping[str, Any]
    ) -> None:
        if settings is not None and overrides:
            raise InvalidOptionError("settings and single fields are given", hint="give one or the other")
        self._settings = settings
        self._opener = opener
        self._clock = clock
        self._overrides = overrides
        self._manager: AsyncManager | None = None

    def __await__(self) -> Generator[Any, None, AsyncManager]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncManager:
        self._manager = await self._open()
        return self._manager

    async def __aexit__(self, *exc: object) -> None:
        if self._manager is not None:
            await self._manager.close()

    async def _open(self) -> AsyncManager:
        settings = self._settings
        if settings is None:
            settings = await asyncio.to_thread(load_settings, **self._overrides)
        opener = self._opener or partial(_open_host, state_dir=settings.runtimes_dir)
        controller = await Controller.open(settings, opener=opener, clock=self._clock)
        return AsyncManager(controller.for_caller(Caller(owner=settings.owner, admin=True)), on_close=controller.close)


def _named(ref: str) -> str:
    check_text("id", ref)
    return ref


async def _open_host(spec: PoolSpec, *, runtime_dir: Path, state_dir: Path) -> Host:
    from yaosb_jupyter.tai.client import open_host

    return await open_host(spec, runtime_dir=runtime_dir, state_dir=state_dir)
