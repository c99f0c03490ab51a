"""Values of the wrong kind: each is refused by name, with one of our errors, and costs nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.manager.conftest import OpenManager
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import InvalidOptionError

MANAGER_CALLS: dict[str, Callable[[Any], Awaitable[object]]] = {
    "id=5": lambda manager: manager.get(5),
    "id=None": lambda manager: manager.remove(None),
    "owner=5": lambda manager: manager.list(owner=5),
    "cpus='x'": lambda manager: manager.create("other", cpus="x"),
}
SANDBOX_CALLS: dict[str, Callable[[Any], Awaitable[object]]] = {
    "holds 5": lambda sandbox: sandbox.exec(["echo", 5]),
    "command=5": lambda sandbox: sandbox.exec(5),
    "env=5": lambda sandbox: sandbox.exec("true", env=5),
    "cwd=5": lambda sandbox: sandbox.exec("true", cwd=5),
    "timeout=b'1'": lambda sandbox: sandbox.exec("true", timeout=b"1"),
    "content of type int": lambda sandbox: sandbox.files.write("i", 5),
    "cannot be written as UTF-8": lambda sandbox: sandbox.files.write("i", "\udc80"),
    "pattern=5": lambda sandbox: sandbox.kill_process(5),
    "path=5": lambda sandbox: sandbox.files.read(5),
    "mode='x'": lambda sandbox: sandbox.files.write("i", "", mode="x"),
    "port='x'": lambda sandbox: sandbox.dial("x"),
    "process_count='x'": lambda sandbox: sandbox.heartbeat(active=True, process_count="x"),
    "tail='x'": lambda sandbox: anext(sandbox.logs(tail="x")),
    "grace=nan": lambda sandbox: sandbox.command("any").kill(float("nan")),
    "signum=0": lambda sandbox: sandbox.command("any").signal(0),
    "grace=-1": lambda sandbox: sandbox.stream("true").cancel(-1),
    "signum=65": lambda sandbox: sandbox.stream("true").signal(65),
    "offset='x'": lambda sandbox: sandbox.files.read("i", offset="x"),
}


@pytest.fixture
async def opened(open_on_memory: OpenManager) -> AsyncManager:
    return await open_on_memory()


@pytest.fixture
async def sandbox(opened: AsyncManager) -> AsyncSandbox:
    return await opened.create("lab")


@pytest.mark.parametrize("named", MANAGER_CALLS)
async def test_bad_values_to_the_manager_are_named(opened: AsyncManager, named: str) -> None:
    with pytest.raises(InvalidOptionError, match=named):
        await MANAGER_CALLS[named](opened)


@pytest.mark.parametrize("named", SANDBOX_CALLS)
async def test_bad_values_to_a_sandbox_are_named(sandbox: AsyncSandbox, named: str) -> None:
    with pytest.raises(InvalidOptionError, match=named):
        await SANDBOX_CALLS[named](sandbox)
    assert (await sandbox.exec("echo on")).stdout == "on\n"


async def test_bytes_like_content_is_written(sandbox: AsyncSandbox) -> None:
    await sandbox.files.write("a", bytearray(b"xy"))  # type: ignore[arg-type]
    assert await sandbox.files.read("a") == b"xy"
