"""Commands that write much: on every runtime all of it comes, by the pipe itself where that can be handed over."""

from __future__ import annotations

import asyncio

from tests.contract.box import Box, collect, sha
from yaosb_jupyter.core.commands.bulk import BulkStream

SIZE = 40_000_000


async def test_much_output_comes_whole(box: Box) -> None:
    script = f"yes 0123456789 | head -c {SIZE}; echo beside >&2; exit 3"
    stream = BulkStream(await box.stream("sh", "-c", script))
    async with asyncio.timeout(60):
        ran = await collect(stream)
    assert ran.code == 3
    assert ran.stderr == b"beside\n"
    assert sha(ran.stdout) == sha((b"0123456789\n" * (SIZE // 11 + 1))[:SIZE])
    link = (await box.runtime.inspect(box.runtime_id)).link
    assert (stream._pipe is not None) == (link == "socket"), link
