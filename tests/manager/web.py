"""A web application running in a sandbox."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.rig import webserver
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.types import Output

PROGRAM = Path(webserver.__file__)


@dataclass(frozen=True, kw_only=True)
class Web:
    """``port`` of the application, ``tcp`` that echoes; see `tests.rig.webserver`."""

    sandbox: AsyncSandbox
    port: int
    tcp: int


@asynccontextmanager
async def serving(sandbox: AsyncSandbox, port: int = 0, tcp: int = 0, host: str = "127.0.0.1") -> AsyncIterator[Web]:
    """Runs it in ``sandbox``, by default on any ports, until left."""
    await sandbox.files.write("webserver.py", await asyncio.to_thread(PROGRAM.read_bytes))
    async with sandbox.stream(["python3", "webserver.py", str(port), str(tcp), "--host", host]) as server:
        events = aiter(server)  # kept: its end is the command's
        async with asyncio.timeout(30):
            said = await anext(events)
        assert isinstance(said, Output), said
        web, tcp = json.loads(said.data)
        yield Web(sandbox=sandbox, port=web, tcp=tcp)
