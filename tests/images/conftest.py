"""A manager on the engine of this machine, and sandboxes of our images that are removed again."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.rig.require import require
from yaosb_jupyter import AsyncManager
from yaosb_jupyter.settings import Settings, load_settings


@pytest.fixture
def engine() -> None:
    """One that our images are on."""
    require("our-images")


@pytest.fixture
def settings(tmp_path: Path, engine: None) -> Settings:
    address = os.environ.get("SANDBOX_TEST_LOCAL_ADDR") or "local"
    return load_settings(environ={}, file=os.devnull, data_dir=tmp_path / "data", tai_addr=address, stop_timeout=1)


@pytest.fixture
async def manager(settings: Settings) -> AsyncIterator[AsyncManager]:
    async with AsyncManager.open(settings) as manager:
        yield manager
        for info in await manager.list():
            await manager.remove(info.uid)
