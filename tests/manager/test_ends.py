"""How a command ended: an exit code above 128 is no death by signal."""

from __future__ import annotations

from yaosb_jupyter.core.manager import AsyncManager


async def test_an_exit_code_that_looks_like_a_signal_is_none(manager: AsyncManager) -> None:
    sandbox = await manager.create("lab")
    exited = await sandbox.exec("exit 141")
    assert (exited.exit_code, exited.signal) == (141, None)
    killed = await sandbox.exec("kill -PIPE $$")
    assert (killed.exit_code, killed.signal) == (141, 13)
