"""One suite over every volume. `hostile` is the workspace in the hands of whoever is in the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.workspaces import SECRET


@pytest.fixture(autouse=True)
def nothing_outside_is_touched(directory: Path) -> Iterator[None]:
    yield
    assert {path.name for path in directory.iterdir()} - {"here"} == {"secret", "workspace"}
    assert (directory / "secret").read_bytes() == SECRET


@pytest.fixture
def here(directory: Path) -> Path:
    """A directory of this machine's user."""
    path = directory / "here"
    path.mkdir()
    return path
