"""What all sandboxes of a runtime share on the host is there while it is needed, and gone afterwards."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.embedded.conftest import make
from tests.manager.conftest import Managers
from tests.manager.rigs import EmbeddedRig
from yaosb_jupyter import AsyncManager
from yaosb_jupyter.tai.runtimes.embedded import EmbeddedRuntime

pytestmark = pytest.mark.embedded


async def test_what_was_cleaned_away_is_put_back(runtime: EmbeddedRuntime, place: Path) -> None:
    """As systems do with temporary files after some days."""
    shutil.rmtree(runtime._host.files.directory)
    box = await make(runtime, place)
    assert (await box.sh("echo here")).stdout == b"here\n"


async def test_the_last_runtime_without_sandboxes_leaves_nothing(runtime: EmbeddedRuntime, place: Path) -> None:
    box = await make(runtime, place)
    other = EmbeddedRuntime({}, place / "run", place / "state")
    await other.open()
    files = runtime._host.files
    await other.close()
    assert files.guest.exists()
    assert (await box.sh("echo here")).stdout == b"here\n"
    await runtime.remove(box.runtime_id)
    await runtime.close()
    assert not files.directory.exists()


async def test_a_pool_that_is_closed_takes_nothing_from_another(runtime: EmbeddedRuntime, place: Path) -> None:
    other = EmbeddedRuntime({}, place / "run", place / "state")
    await other.open()
    await other.close()
    box = await make(runtime, place)
    assert (await box.sh("echo here")).stdout == b"here\n"


async def test_a_manager_without_sandboxes_leaves_no_directory(tmp_path: Path) -> None:
    settings = Managers(EmbeddedRig(tmp_path)).settings()
    async with AsyncManager.open(settings) as manager:
        await (await manager.create("lab")).remove()
        assert settings.runtime_dir.exists()
    assert not settings.runtime_dir.exists()
