"""Fixtures for every test. What the machine must offer is in `tests.rig.require`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import settings

pytest_plugins = ["tests.rig.require"]
settings.register_profile("tests", deadline=None)  # a busy machine is no fault of an example
settings.load_profile("tests")

MAY_BLOCK: Final = (
    ("yaosb_jupyter/settings.py", "load_settings"),  # programs read their settings before there is a loop
    ("yaosb_jupyter/link/handover.py", "_is_pipe"),  # the kernel answers
    ("<frozen importlib._bootstrap>", "_find_and_load"),  # libraries are loaded where they are first used
)


def pytest_configure(config: pytest.Config) -> None:
    """Workers share one short directory: sockets lie below, whose paths may have 107 bytes."""
    if getattr(config.option, "numprocesses", None) and config.option.basetemp is None:
        directory = tempfile.TemporaryDirectory(prefix="yaosb-", ignore_cleanup_errors=True)
        config.add_cleanup(directory.cleanup)
        config.option.basetemp = f"{directory.name}/t"


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[BlockBuster]:
    """A blocking call of ours on an event loop fails the test."""
    with blockbuster_ctx("yaosb_jupyter") as found:
        for function in found.functions.values():
            for file, name in MAY_BLOCK:
                function.can_block_in(file, name)
        yield found


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty directory, for a volume or a guest to work in."""
    path = tmp_path / "workspace"
    path.mkdir()
    return path
