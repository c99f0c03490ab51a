"""Several pools on one engine: each serves its own sandboxes, and leaves those of the others in peace."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.manager.conftest import RIGS, OpenManager
from tests.manager.rigs import DockerRig, Rig
from tests.manager.waiting import until
from tests.manager.web import serving
from yaosb_jupyter.core import following
from yaosb_jupyter.core.observation import Observer
from yaosb_jupyter.core.pool import Pool
from yaosb_jupyter.types import Output, PoolSpec


class RelayRig(DockerRig):
    """Its guests are reached through the engine."""

    def pools(self, *names: str, **fields: Any) -> tuple[PoolSpec, ...]:
        return super().pools(*names, options={"shared_files": "no"}, **fields)


EACH = [*RIGS, pytest.param(RelayRig, id="relay", marks=pytest.mark.docker)]


@pytest.fixture
def reconciled(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each pool was compared with its engine, which is done all the time."""
    count: Counter[str] = Counter()
    reconcile = Observer.reconcile

    async def counted(self: Observer, pool: Pool) -> None:
        await reconcile(self, pool)
        count[pool.name] += 1

    monkeypatch.setattr(Observer, "reconcile", counted)
    monkeypatch.setattr(following, "RESYNC", 0.05)
    return count


@pytest.mark.parametrize("rig", EACH, indirect=True)
async def test_the_other_pools_look_leaves_a_link_alone(
    open_manager: OpenManager, rig: Rig, reconciled: Counter[str]
) -> None:
    manager = await open_manager(pools=rig.pools("first", "second", "third"))
    sandbox = await manager.create("lab", pool="second")
    async with serving(sandbox) as web, await sandbox.dial(web.tcp) as connection:
        for word in (b"one", b"two", b"three"):
            looked = reconciled.copy()

            async def has_looked(before: Counter[str] = looked) -> bool:
                return all(reconciled[name] > before[name] + 3 for name in ("first", "second", "third"))

            await until(has_looked, within=30)
            await connection.send(word)
            assert await connection.receive() == word


@pytest.mark.parametrize("rig", EACH[1:], indirect=True)
async def test_after_a_restart_each_finds_its_own(open_manager: OpenManager, rig: Rig) -> None:
    """What only a link can do is done by it, at once."""
    pools = rig.pools("first", "second")
    manager = await open_manager(pools=pools)
    command = await (await manager.create("lab", pool="second")).spawn(
        ["sh", "-c", "read line; echo $line"], stdin=True
    )
    await manager.close()
    manager = await open_manager(pools=pools)
    sandbox = await manager.get("lab")
    assert sandbox.last_info.pool == "second"
    async with asyncio.timeout(20):
        async with sandbox.command(command.id).attach() as attached:
            await attached.send("still there\n")
            said = await anext(aiter(attached))
    assert isinstance(said, Output)
    assert said.data == "still there\n"


@pytest.mark.parametrize("rig", EACH, indirect=True)
async def test_a_lost_record_is_restored_to_the_pool_it_was_made_in(
    open_manager: OpenManager, rig: Rig, tmp_path: Path
) -> None:
    pools = rig.pools("first", "second")
    manager = await open_manager(pools=pools)
    uid = (await manager.create("lab", pool="second")).uid
    await manager.close()
    (tmp_path / "data" / "sandboxes" / uid / "record.json").unlink()
    manager = await open_manager(pools=pools)
    assert (await manager.get("lab")).last_info.pool == "second"
    await manager.close()

    (tmp_path / "data" / "sandboxes" / uid / "record.json").unlink()
    manager = await open_manager(pools=rig.pools("first"))
    sandbox = await manager.get("lab")
    assert sandbox.last_info.pool == "first", "nobody else can be asked for it"
    assert (await sandbox.exec("echo here")).stdout == "here\n"
