"""Adding and removing pools while the manager runs."""

from __future__ import annotations

import asyncio

from yaosb_jupyter.core.following import Follower
from yaosb_jupyter.core.pool import Pool
from yaosb_jupyter.core.removal import Remover
from yaosb_jupyter.core.service import Progress
from yaosb_jupyter.core.state import State
from yaosb_jupyter.core.view import pool_info
from yaosb_jupyter.errors import InvalidOptionError, PoolInUseError
from yaosb_jupyter.tai.runtimes.base import Capability
from yaosb_jupyter.types import PoolInfo, PoolSpec


class Pooling:
    def __init__(self, state: State, follower: Follower, remover: Remover) -> None:
        self._state = state
        self._follower = follower
        self._remover = remover

    def infos(self) -> list[PoolInfo]:
        return [self._info(pool) for pool in self._state.pools]

    async def add(self, spec: PoolSpec) -> PoolInfo:
        """Its sandboxes of an earlier configuration, if any, are at hand again. Raises the cause if unreachable."""
        before = self._state.pools.find(spec.name)
        pool = self._state.pools.add(spec)
        try:
            await pool.connect()
        except BaseException:
            self._state.pools.put_back(pool, before)
            raise
        if before is not None:
            await before.close()
        self._follower.begin(pool)
        return self._info(pool)

    async def remove(self, name: str, *, force: bool) -> None:
        """Raises `PoolInUseError` where it has sandboxes, unless ``force``, which removes them too.

        From the first moment creates on it fail with `PoolNotFoundError`. Where a sandbox cannot be removed the pool is
        left as it was, and the error raised.
        """
        pool = self._state.pools.get(name)
        entries = self._state.table.of_pool(pool.name)
        if entries and not force:
            raise PoolInUseError(
                f"it has {len(entries)} sandboxes", pool=pool.name, hint="remove them first, or give force=True"
            )
        pool.closing = True
        try:
            results = await asyncio.gather(*(self._remover.remove(entry) for entry in entries), return_exceptions=True)
        except BaseException:
            pool.closing = False
            raise
        failed = [result for result in results if isinstance(result, BaseException)]
        if failed:
            pool.closing = False
            raise failed[0]
        await self._follower.end(pool)
        self._state.pools.drop(pool)
        await pool.close()

    async def image_exists(self, image: str, name: str) -> bool:
        pool = self._state.pools.get(name)
        info = pool.host.info
        if Capability.IMAGES not in info.capabilities:
            return image == info.default_image
        return await pool.runtime.image_exists(image)

    async def pull_image(self, image: str, name: str, progress: Progress | None) -> None:
        """Raises `InvalidOptionError` where the pool has no use for images."""
        pool = self._state.pools.get(name)
        info = pool.host.info
        if Capability.IMAGES not in info.capabilities:
            raise InvalidOptionError(
                f"image {image!r} cannot be pulled: {info.kind} runs the programs of its host, and has no images",
                pool=pool.name,
                hint="use a pool with a Docker engine",
            )
        await pool.runtime.pull_image(image, progress)

    def _info(self, pool: Pool) -> PoolInfo:
        return pool_info(pool, self._state.table.of_pool(pool.name))
