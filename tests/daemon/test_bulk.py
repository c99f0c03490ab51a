"""Commands that write much: the daemon hands their pipe on to its client."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from tests.contract.box import eventually
from tests.daemon.conftest import Connect, Station, configure
from yaosb_jupyter import connect as connect_blocking
from yaosb_jupyter.core.commands import command as asynchronous
from yaosb_jupyter.core.commands.command import take_now
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import OutputLimitExceededError
from yaosb_jupyter.types import Exit

SIZE = 30_000_000
SCRIPT = f"yes 0123456789 | head -c {SIZE}; echo beside >&2; exit 3"
WHOLE = hashlib.sha256((b"0123456789\n" * (SIZE // 11 + 1))[:SIZE]).digest()


@pytest.fixture
async def manager(station: Station, monkeypatch: pytest.MonkeyPatch, connect: Connect) -> AsyncManager:
    configure(station, monkeypatch, "embedded")
    client: AsyncManager = await connect()
    return client


@pytest.fixture
async def sandbox(manager: AsyncManager) -> AsyncIterator[AsyncSandbox]:
    sandbox = await manager.create("lab")
    yield sandbox
    await sandbox.remove()


async def descriptors(pid: int | None) -> int:
    return len(await asyncio.to_thread(os.listdir, f"/proc/{pid}/fd"))


@pytest.mark.embedded
async def test_all_of_it_comes_by_the_pipe(station: Station, sandbox: AsyncSandbox) -> None:
    await sandbox.exec("true")
    before = await descriptors(station.pid), await descriptors(os.getpid())
    digest, errors = hashlib.sha256(), b""
    async with asyncio.timeout(60), sandbox.stream(SCRIPT, encoding=None) as stream:
        async for event in stream:
            if isinstance(event, Exit):
                break
            if event.channel == "stdout":
                digest.update(event.data)
            else:
                errors += event.data
        assert stream._inner is not None
        assert stream._inner._pipe is not None  # type: ignore[attr-defined]
    assert (event.status.exit_code, errors) == (3, b"beside\n")
    assert digest.digest() == WHOLE

    async def none_left() -> bool:
        return (await descriptors(station.pid), await descriptors(os.getpid())) == before

    await eventually(none_left, what="daemon and client have closed it")


@pytest.mark.embedded
async def test_its_limit_holds(sandbox: AsyncSandbox) -> None:
    with pytest.raises(OutputLimitExceededError) as refused:
        await asyncio.wait_for(sandbox.exec("yes", max_output=5_000_000, truncate=False), 30)
    assert len(refused.value.result.stdout) == 5_000_000


@pytest.mark.embedded
async def test_who_leaves_ends_it(sandbox: AsyncSandbox) -> None:
    async with sandbox.stream("yes") as stream:
        read = 0
        async for event in stream:
            read += 0 if isinstance(event, Exit) else len(event.data)
            if read > SIZE:
                break

    async def ended() -> bool:
        return not await sandbox.list_commands()

    await eventually(ended, what="it was ended")


@pytest.mark.embedded
@pytest.mark.parametrize("encoding", [None, "utf-8"])
def test_the_blocking_face_reads_it_in_its_own_thread(
    encoding: str | None, station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(station, monkeypatch, "embedded")
    taken: list[object] = []
    monkeypatch.setattr(asynchronous, "take_now", lambda stream: taken.append(found := take_now(stream)) or found)
    digest = hashlib.sha256()
    with connect_blocking() as manager, manager.create("lab").stream(SCRIPT, encoding=cast(Any, encoding)) as stream:
        for event in stream:
            if isinstance(event, Exit):
                assert event.status.exit_code == 3
            elif event.channel == "stdout":
                data: Any = event.data
                digest.update(data if encoding is None else data.encode())
        manager.remove("lab")
    assert digest.digest() == WHOLE
    assert any(taken)
