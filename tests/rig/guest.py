"""A guest as a plain process of this machine, and the link to it."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yaosb_jupyter.link.blob import install_blob
from yaosb_jupyter.link.door import SocketDoor
from yaosb_jupyter.link.guest import GuestLink, new_key

PATIENCE = 20.0


@dataclass(frozen=True, kw_only=True)
class RunningGuest:
    link: GuestLink
    pid: int


@asynccontextmanager
async def running_guest(
    workspace: Path, *, python: str = sys.executable, sandbox: str = "box", **config: Any
) -> AsyncIterator[RunningGuest]:
    """Started from its blob, as in any sandbox; ended with the block."""
    place = Path(tempfile.mkdtemp(prefix="yaosb-guest-"))
    blob = await asyncio.to_thread(install_blob, place)
    key = new_key()
    link = GuestLink(SocketDoor(place / "link.sock", sandbox=sandbox), key, sandbox=sandbox)
    await link.listen()
    guest = await asyncio.create_subprocess_exec(python, "-I", "-S", str(blob), stdin=asyncio.subprocess.PIPE)
    try:
        told = {"socket": str(place / "link.sock"), "key": key, "workdir": str(workspace), **config}
        assert guest.stdin is not None
        guest.stdin.write(json.dumps(told).encode() + b"\n")
        await link.connected(PATIENCE)
        yield RunningGuest(link=link, pid=guest.pid)
    finally:
        if guest.returncode is None:
            guest.terminate()
        async with asyncio.timeout(PATIENCE):
            await guest.wait()
        await link.close()
        shutil.rmtree(place)
