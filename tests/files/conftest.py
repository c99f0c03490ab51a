"""A sandbox whose files are looked at by both faces: of a manager in this process, and of one in a daemon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.conftest import Station, station
from yaosb_jupyter.blocking.entry import connect
from yaosb_jupyter.blocking.manager import Manager
from yaosb_jupyter.blocking.sandbox import Sandbox
from yaosb_jupyter.settings import load_settings

__all__ = ["station"]


@pytest.fixture(params=["in process", "daemon"])
def manager(request: pytest.FixtureRequest, station: Station) -> Iterator[Manager]:
    with connect() if request.param == "daemon" else Manager.open(load_settings()) as manager:
        yield manager


@pytest.fixture
def sandbox(manager: Manager) -> Iterator[Sandbox]:
    with manager.create("lab") as sandbox:
        yield sandbox
    manager.remove("lab")


@pytest.fixture
def workspace(station: Station, sandbox: Sandbox) -> Path:
    """The directory that the sandbox works in: the memory runtime's is one of this machine."""
    return station.place.data_dir / "sandboxes" / sandbox.uid / "workspace"
