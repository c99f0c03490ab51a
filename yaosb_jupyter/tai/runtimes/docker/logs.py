"""Output of main processes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime

from yaosb_jupyter.tai.runtimes.docker.demux import Demultiplexer
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.types import LogChunk


async def read_logs(
    engine: Engine, runtime_id: str, *, follow: bool, tail: int | None, since: datetime | None
) -> AsyncIterator[LogChunk]:
    """What the main process wrote, from the engine's own log; ends with the process if ``follow``."""
    query = {"stdout": "true", "stderr": "true", "follow": "true" if follow else "false"}
    query["tail"] = "all" if tail is None else str(max(0, tail))
    if since is not None:
        query["since"] = f"{since.timestamp():.6f}"
    target = engine.target("containers", runtime_id, "logs", **query)
    demultiplexer = Demultiplexer()
    async with engine.stream("GET", target, sandbox=runtime_id) as response:
        async for data in response.chunks():
            for channel, piece in demultiplexer.feed(data):
                yield LogChunk(channel=channel, data=piece)
