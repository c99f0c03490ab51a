"""Every error of a sandbox names it as its user does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.manager.conftest import OpenManager
from tests.manager.rigs import MemoryRig
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import RuntimeUnavailableError, SandboxError
from yaosb_jupyter.types import SandboxInfo

Fails = Callable[[AsyncSandbox], Awaitable[object]]

RUNNING: dict[str, Fails] = {
    "read a missing file": lambda sandbox: sandbox.files.read("missing"),
    "read outside": lambda sandbox: sandbox.files.read("../x"),
    "list a missing directory": lambda sandbox: sandbox.files.list("missing"),
    "rename what is missing": lambda sandbox: sandbox.files.rename("missing", "there"),
    "download what is missing": lambda sandbox: sandbox.copy_from("missing", Path("nowhere")),
    "run what is missing": lambda sandbox: sandbox.exec(["no-such-command"]),
    "run as a stranger": lambda sandbox: sandbox.exec(["true"], user="nobody-here"),
}
STOPPED: dict[str, Fails] = {
    "run": lambda sandbox: sandbox.exec("true"),
    "dial": lambda sandbox: sandbox.dial(80),
    "stats": lambda sandbox: sandbox.stats(),
}


def check(error: SandboxError, info: SandboxInfo) -> None:
    assert error.sandbox == "lab"
    for internal in (info.uid, info.runtime_id, "yao-sb-"):
        assert internal not in str(error)


async def test_errors_name_the_id_that_the_user_gave(manager: AsyncManager) -> None:
    sandbox = await manager.create("lab")
    info = await sandbox.info()
    for fails in RUNNING.values():
        with pytest.raises(SandboxError) as caught:
            await fails(sandbox)
        check(caught.value, info)
    await sandbox.stop()
    for fails in STOPPED.values():
        with pytest.raises(SandboxError) as caught:
            await fails(sandbox)
        check(caught.value, info)


@pytest.mark.parametrize("operation", ["create", "start"])
async def test_a_failed_creation_names_the_id(
    open_on_memory: OpenManager, memory_rig: MemoryRig, operation: str
) -> None:
    manager = await open_on_memory()
    memory_rig.engine.fail_next(operation, RuntimeUnavailableError("no", sandbox="an-internal-name"))
    with pytest.raises(RuntimeUnavailableError) as caught:
        await manager.create("lab")
    assert caught.value.sandbox == "lab"


@pytest.mark.parametrize("operation", ["stop", "remove", "exec_stream", "stats"])
async def test_a_failed_call_names_the_id(open_on_memory: OpenManager, memory_rig: MemoryRig, operation: str) -> None:
    manager = await open_on_memory()
    sandbox = await manager.create("lab")
    memory_rig.engine.fail_next(operation, RuntimeUnavailableError("no", sandbox="an-internal-name"))
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "stop": sandbox.stop,
        "remove": sandbox.remove,
        "exec_stream": lambda: sandbox.exec("true"),
        "stats": sandbox.stats,
    }
    with pytest.raises(RuntimeUnavailableError) as caught:
        await calls[operation]()
    assert caught.value.sandbox == "lab"
