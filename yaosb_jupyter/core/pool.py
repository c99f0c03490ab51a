"""Pools: the hosts that sandboxes run on, connected or not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from yaosb_jupyter.core.patience import CONNECT, within
from yaosb_jupyter.errors import (
    AlreadyExistsError,
    NotAvailableError,
    PoolNotFoundError,
    RuntimeUnavailableError,
    SandboxError,
)
from yaosb_jupyter.tai.runtimes.base import Runtime, RuntimeInfo
from yaosb_jupyter.types import PoolSpec


class Host(Protocol):
    """What `yaosb_jupyter.tai.client.open_host` returns."""

    @property
    def runtime(self) -> Runtime: ...
    @property
    def info(self) -> RuntimeInfo: ...
    @property
    def address(self) -> str: ...
    async def close(self) -> None: ...


class Opener(Protocol):
    def __call__(self, spec: PoolSpec, *, runtime_dir: Path) -> Awaitable[Host]: ...


class Pool:
    """One pool. ``retired``: it left the configuration while it had sandboxes; it takes no new ones."""

    def __init__(self, spec: PoolSpec, *, opener: Opener, runtime_dir: Path, retired: bool = False) -> None:
        self.spec = spec
        self.retired = retired
        self.closing = False
        self.error = "" if not retired else "it is not in the configuration any more"
        self._opener = opener
        self._runtime_dir = runtime_dir
        self.info: RuntimeInfo | None = None  # also what it told when it was last connected
        self._host: Host | None = None
        self._connecting = asyncio.Lock()

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def connected(self) -> bool:
        return self._host is not None

    @property
    def host(self) -> Host:
        """Raises `RuntimeUnavailableError` with the cause while not connected."""
        if self._host is None:
            raise RuntimeUnavailableError(
                f"it cannot be reached: {self.error or 'not connected yet'}",
                pool=self.name,
                hint="it is tried again by itself; the list of pools shows its state",
            )
        return self._host

    @property
    def runtime(self) -> Runtime:
        return self.host.runtime

    @property
    def address(self) -> str:
        return self._host.address if self._host is not None else self.spec.address

    async def connect(self) -> None:
        """No-op when connected. Raises `SandboxError` with the cause, which ``error`` then tells."""
        async with self._connecting:
            if self._host is not None:
                return
            try:
                async with within(CONNECT, "answer", pool=self.name):
                    self._host = await self._opener(self.spec, runtime_dir=self._runtime_dir)
            except SandboxError as error:
                self.error = str(error)
                raise
            self.info = self._host.info
            self.error = ""

    async def lose(self, cause: str) -> None:
        """Marks the pool unreachable."""
        self.error = cause
        await self.close()

    async def close(self) -> None:
        host, self._host = self._host, None
        if host is not None:
            await host.close()


class Pools:
    """The pools by name; the first is the default."""

    def __init__(self, make: Callable[[PoolSpec, bool], Pool]) -> None:
        self._make = make
        self._pools: dict[str, Pool] = {}

    def __iter__(self) -> Iterator[Pool]:
        return iter(tuple(self._pools.values()))

    def configured(self) -> list[Pool]:
        return [pool for pool in self if not pool.retired and not pool.closing]

    def add(self, spec: PoolSpec) -> Pool:
        """Raises `AlreadyExistsError`."""
        existing = self._pools.get(spec.name)
        if existing is not None and not existing.retired:
            raise AlreadyExistsError("a pool of that name is configured", pool=spec.name, hint="choose another name")
        pool = self._pools[spec.name] = self._make(spec, False)
        return pool

    def retire(self, name: str, address: str) -> Pool:
        """The pool of sandboxes whose pool is not configured; reached only when somebody asks for one of them."""
        if name not in self._pools:
            self._pools[name] = self._make(PoolSpec(name=name, address=address), True)
        return self._pools[name]

    def get(self, name: str = "") -> Pool:
        """A configured pool, the default for an empty name. Raises `PoolNotFoundError`."""
        configured = self.configured()
        pool = next((pool for pool in configured if name in ("", pool.name)), None)
        if pool is None:
            known = ", ".join(pool.name for pool in configured) or "none"
            raise PoolNotFoundError("no such pool is configured", pool=name or None, hint=f"configured: {known}")
        return pool

    def of(self, name: str) -> Pool:
        """The pool of an existing sandbox, retired or not."""
        return self._pools[name]

    def find(self, name: str) -> Pool | None:
        return self._pools.get(name)

    def put_back(self, pool: Pool, before: Pool | None) -> None:
        """Undoes `add`: what was there ``before``, a retired pool or none, is there again."""
        self.drop(pool)
        if before is not None:
            self._pools[before.name] = before

    def drop(self, pool: Pool) -> None:
        if self._pools.get(pool.name) is pool:
            del self._pools[pool.name]

    async def connect_all(self) -> None:
        """Tries all configured pools at once. Raises `NotAvailableError` where none answers."""
        pools = self.configured()
        results = await asyncio.gather(*(pool.connect() for pool in pools), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, SandboxError):
                raise result
        if not any(pool.connected for pool in pools):
            raise NotAvailableError("no pool can be reached: " + _causes(pools), hint=_WITHOUT_ENGINE)

    async def close(self) -> None:
        await asyncio.gather(*(pool.close() for pool in self))


_WITHOUT_ENGINE = "`yaosb doctor` tells what works on this machine; without an engine: YAO_TAI_ADDR=embedded"


def _causes(pools: Iterable[Pool]) -> str:
    return "; ".join(f"{pool.name}: {pool.error}" for pool in pools) or "none is configured"
