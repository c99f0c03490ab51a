"""What a guest takes of a sandbox's memory."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from tests.contract.box import eventually
from tests.guest.rig import Guest, guest

MOST = 3 << 19
"""Bytes beyond a fresh one: pools of small objects are given back only when all of a mebibyte is free."""


def anonymous(pid: int) -> int:
    """Bytes; files that are mapped, the interpreter above all, are shared by all guests of a host."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(r"^RssAnon:\s*(\d+) kB$", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


async def test_a_guest_that_has_done_much_becomes_small_again(tmp_path: Path) -> None:
    async with guest(tmp_path) as running:
        await running.link.connected(10)
        await running.run("true")
        fresh = anonymous(running.process.pid)
        await asyncio.gather(*(running.run("true", timeout=60) for _ in range(100)))
        for place in ("", ">&2"):
            await running.run("sh", "-c", f"head -c 50M /dev/zero {place}")
        await _feed(running, 20 << 20)
        await eventually(lambda: _is_small(running, fresh + MOST), what="small again")


async def _is_small(running: Guest, most: int) -> bool:
    return anonymous(running.process.pid) <= most


async def _feed(running: Guest, size: int) -> None:
    stream = await running.exec("sh", "-c", "cat > /dev/null", stdin=True)
    await stream.send(bytes(size))
    await stream.close_stdin()
    assert (await stream.wait()).exit_code == 0
