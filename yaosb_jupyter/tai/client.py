"""Opening a host by its address. Each runtime is loaded when it is first asked for."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Self, Unpack, overload

from yaosb_jupyter.errors import (
    InvalidOptionError,
    NotAvailableError,
    RuntimeUnavailableError,
    SandboxError,
    UnavailableError,
    missing_extra,
)
from yaosb_jupyter.link.services import NO_SERVICES, Services
from yaosb_jupyter.tai.address import Address, Kind, parse_address
from yaosb_jupyter.tai.connect.attach import AttachFields, Protocol, attach
from yaosb_jupyter.tai.connect.base import AsyncAttachment
from yaosb_jupyter.tai.proxy.host import HostProxy
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec, Runtime, RuntimeInfo
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.tai.vnc.desktop import look, shown
from yaosb_jupyter.tai.vnc.desktop import serve as serve_desktop
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.tai.volumes.local import LocalVolume
from yaosb_jupyter.types import Desktop, PoolSpec, ServerEvent

_CHOICE_SECONDS = 8.0
"""For an engine to be taken rather than `embedded`: what it needs to answer and to be probed, less than a pool has."""


class HostClient:
    """One opened host: its ``runtime``, the files of its environments, and ways to what listens in them.

    ``address`` is the one that was found to answer, where the pool left the choice. Leaving ``async with`` closes it.
    """

    def __init__(self, *, runtime: Runtime, info: RuntimeInfo, address: str) -> None:
        self.runtime = runtime
        self.info = info
        self.address = address
        self.proxy = HostProxy(runtime)
        self._stack = AsyncExitStack()
        self._stack.push_async_callback(runtime.close)
        self._stack.push_async_callback(self.proxy.close)

    def __repr__(self) -> str:
        return f"<HostClient {self.address!r}, {self.info.kind} {self.info.version}>"

    @property
    def is_local(self) -> bool:
        """Whether its environments run on this machine."""
        return self.info.is_local

    def volume(self, spec: EnvironmentSpec, runtime_id: str) -> Volume:
        """The files of an environment."""
        return self.runtime.volume(spec, runtime_id)

    def workspace(self, directory: Path | str) -> Volume:
        """The files of a directory of this machine that is, or shall be, an environment's workspace.

        Raises `NotAvailableError` where the host sees no directories of this machine.
        """
        if not self.info.shared_files:
            raise NotAvailableError(
                f"{self.address} sees no directories of this machine", hint="volume() reaches an environment's files"
            )
        return LocalVolume(Path(directory))

    @overload
    async def attach(
        self, runtime_id: str, port: int, protocol: Literal["ws"] = "ws", **fields: Unpack[AttachFields]
    ) -> AsyncAttachment[str | bytes]: ...

    @overload
    async def attach(
        self, runtime_id: str, port: int, protocol: Literal["sse"], **fields: Unpack[AttachFields]
    ) -> AsyncAttachment[ServerEvent]: ...

    @overload
    async def attach(
        self, runtime_id: str, port: int, protocol: Literal["tcp"], **fields: Unpack[AttachFields]
    ) -> AsyncAttachment[bytes]: ...

    async def attach(
        self, runtime_id: str, port: int, protocol: Protocol = "ws", **fields: Unpack[AttachFields]
    ) -> AsyncAttachment[Any]:
        """Connects to a server in an environment; see `AsyncSandbox.attach`."""
        return await attach(partial(self.runtime.dial, runtime_id, port), runtime_id, port, protocol, fields)

    async def vnc(self, runtime_id: str) -> Desktop:
        """Whether an environment's desktop is ready, and where it is shown; see `AsyncSandbox.vnc`.

        Raises `NotFoundError`, `NotRunningError`.
        """
        status, port = await look(self.runtime, runtime_id)
        return await shown(status, lambda: self.proxy.url(runtime_id, port, serve=serve_desktop))

    def on_close(self, end: Callable[[], Awaitable[None]]) -> None:
        """``end`` is called when the host was let go of."""
        stack = AsyncExitStack()
        stack.push_async_callback(end)
        stack.push_async_exit(self._stack.pop_all())
        self._stack = stack

    async def close(self) -> None:
        """Lets go of the host; what runs there goes on. Idempotent."""
        await self._stack.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a runtime is given by its manager: see `open_host`."""

    runtime_dir: Path
    state_dir: Path | None
    services: Services


async def open_host(
    spec: PoolSpec, *, runtime_dir: Path, state_dir: Path | None = None, services: Services = NO_SERVICES
) -> HostClient:
    """Connects to a pool's host. ``runtime_dir`` is a short path for sockets, ``state_dir`` outlives a restart,
    ``services`` can be reached from inside where the runtime tells `Capability.SERVICES`.

    An empty address is the Docker engine of this machine where one answers, else `embedded`. Raises
    `InvalidOptionError` for a bad address, `RuntimeUnavailableError` or `NotAvailableError` with the way out.
    """
    address = parse_address(spec.address)
    given = Given(runtime_dir=runtime_dir, state_dir=state_dir, services=services)
    try:
        if address.kind is not Kind.CHOOSE:
            return await _open(address, spec, given)
        return await _choose(spec, given)
    except SandboxError as error:
        error.pool = error.pool or spec.name
        raise


async def open_address(
    address: str, options: Mapping[str, str], *, runtime_dir: Path | None, state_dir: Path | None
) -> HostClient:
    """See `yaosb_jupyter.tai.open`."""
    if parse_address(address).kind is Kind.CHOOSE:
        raise InvalidOptionError(
            f"address={address!r} names no host",
            hint="local is the Docker engine of this machine, embedded runs without one",
        )
    spec = PoolSpec(name="host", address=address, options=options)
    if runtime_dir is not None:
        return await open_host(spec, runtime_dir=runtime_dir, state_dir=state_dir)
    directory = await in_thread(tempfile.mkdtemp, prefix="yaosb-")

    async def remove() -> None:
        await in_thread(shutil.rmtree, directory, ignore_errors=True)

    try:
        host = await open_host(spec, runtime_dir=Path(directory), state_dir=state_dir)
    except BaseException:
        await remove()
        raise
    host.on_close(remove)
    return host


async def _choose(spec: PoolSpec, given: Given) -> HostClient:
    try:
        async with asyncio.timeout(_CHOICE_SECONDS):
            return await _open(parse_address("local"), spec, given)
    except (UnavailableError, TimeoutError):  # no engine: that is what the other one is for
        return await _open(parse_address("embedded"), spec, given)


async def _open(address: Address, spec: PoolSpec, given: Given) -> HostClient:
    runtime = _LOADERS[address.kind](address, spec, given)
    try:
        info = await runtime.open()
    except BaseException:
        await runtime.close()
        raise
    return HostClient(runtime=runtime, info=info, address=address.text)


def _docker(address: Address, spec: PoolSpec, given: Given) -> Runtime:
    try:
        from yaosb_jupyter.tai.runtimes.docker import DockerRuntime
    except ModuleNotFoundError as error:
        if error.name != "docker":
            raise
        raise missing_extra("docker", "the Docker runtime") from error
    return DockerRuntime(address.text, spec.options, given.runtime_dir, given.services)


def _embedded(_address: Address, spec: PoolSpec, given: Given) -> Runtime:
    from yaosb_jupyter.tai.runtimes.embedded import EmbeddedRuntime

    return EmbeddedRuntime(spec.options, given.runtime_dir, given.state_dir, given.services)


def _memory(address: Address, _spec: PoolSpec, _given: Given) -> Runtime:
    from yaosb_jupyter.tai.runtimes.memory import MemoryRuntime, named_engine

    return MemoryRuntime(named_engine(address.rest) if address.rest else None)


def _later(address: Address, _spec: PoolSpec, _given: Given) -> Runtime:
    raise RuntimeUnavailableError(
        f"address {address.text!r}: {address.kind} is not yet in this version", hint="use local or embedded"
    )


_LOADERS: Final[dict[Kind, Callable[[Address, PoolSpec, Given], Runtime]]] = {
    Kind.DOCKER: _docker,
    Kind.EMBEDDED: _embedded,
    Kind.MEMORY: _memory,
    Kind.TAI: _later,
    Kind.KUBERNETES: _later,
}
