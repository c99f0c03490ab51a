"""An embedded runtime over directories of a test's own."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.box import Box
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec
from yaosb_jupyter.tai.runtimes.embedded import EmbeddedRuntime


@pytest.fixture
def place() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="yaosb-"))
    path.chmod(0o755)
    (path / "run").mkdir(mode=0o700)
    yield path
    shutil.rmtree(path)


@pytest.fixture
async def runtime(place: Path) -> AsyncIterator[EmbeddedRuntime]:
    opened = EmbeddedRuntime({}, place / "run", place / "state")
    await opened.open()
    yield opened
    for state in await opened.list({}):
        await opened.remove(state.runtime_id)
    await opened.close()


def spec_in(place: Path, **fields: Any) -> EnvironmentSpec:
    uid = f"01TEST{secrets.token_hex(6)}"
    directory = place / "sandboxes" / uid
    directory.mkdir(parents=True)
    given = {"workspace": directory / "workspace", "labels": {}, **fields}
    return EnvironmentSpec(uid=uid, name=f"n-{uid}", image="", directory=directory, **given)


async def make(runtime: EmbeddedRuntime, place: Path, **fields: Any) -> Box:
    spec = spec_in(place, **fields)
    box = Box(runtime=runtime, runtime_id=await runtime.create(spec), spec=spec)
    return await box.start()
