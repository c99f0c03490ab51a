"""What an archive keeps before it is sent is let go, wherever a write is cancelled."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.docker.conftest import MakeBox
from yaosb_jupyter.tai.runtimes.docker import DockerRuntime

pytestmark = pytest.mark.docker


async def test_x10_a_write_that_is_cancelled_as_its_spool_is_made_closes_it(
    monkeypatch: pytest.MonkeyPatch, runtime: DockerRuntime, make_box: MakeBox
) -> None:
    box = await make_box(runtime)
    loop = asyncio.get_running_loop()
    make, made = tempfile.SpooledTemporaryFile, []

    def make_and_cancel(*arguments: Any) -> tempfile.SpooledTemporaryFile[bytes]:
        made.append(make(*arguments))
        loop.call_soon_threadsafe(writing.cancel)
        return made[0]

    async def content() -> AsyncIterator[bytes]:
        yield b"new"
        await asyncio.Event().wait()

    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", make_and_cancel)
    writing = asyncio.ensure_future(runtime._archive(box.runtime_id).write("file", content()))
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert made[0].closed
