"""Opening a host by its address. Each runtime is loaded when it is first asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yaosb_jupyter.errors import RuntimeUnavailableError, SandboxError, UnavailableError, missing_extra
from yaosb_jupyter.link.services import NO_SERVICES, Services
from yaosb_jupyter.tai.address import Address, Kind, parse_address
from yaosb_jupyter.tai.runtimes.base import Runtime, RuntimeInfo
from yaosb_jupyter.types import PoolSpec

_CHOICE_SECONDS = 8.0
"""For an engine to be taken rather than `embedded`: what it needs to answer and to be probed, less than a pool has."""


@dataclass(frozen=True, kw_only=True)
class HostClient:
    """One opened host. ``address`` is the one that was found to answer, where the pool left the choice."""

    runtime: Runtime
    info: RuntimeInfo
    address: str

    async def close(self) -> None:
        """Lets go of the host; what runs there goes on. Idempotent."""
        await self.runtime.close()


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
