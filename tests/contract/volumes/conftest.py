"""One suite over every volume. `hostile` is the workspace in the hands of whoever is in the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.workspaces import SECRET


@pytest.fixture(autouse=True)
def nothing_outside_is_touched(directory: Path) -> Iterator[None]:
    yield
    assert sorted(path.name for path in directory.iterdir()) == ["secret", "workspace"]
    assert (directory / "secret").read_bytes() == SECRET
