"""A notebook's shell over a manager of this process, on the memory runtime, which runs real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import CapturedIO, capture_output
from traitlets.config import Config

from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.jupyter.extension import register, unload_ipython_extension
from yaosb_jupyter.jupyter.session import Session
from yaosb_jupyter.types import PoolSpec


class Notebook:
    """Cells run one after the other in one shell."""

    def __init__(self, shell: InteractiveShell, session: Session, portal: BlockingPortal) -> None:
        self.shell = shell
        self.session = session
        self.portal = portal

    def run(self, cell: str) -> CapturedIO:
        """What the cell showed; raises what it raised. Its value is in ``value``."""
        with capture_output() as shown:
            done = self.shell.run_cell(cell)
        self.value: Any = done.result
        done.raise_error()
        return shown

    def manager(self) -> AsyncManager:
        return self.portal.call(self.session.manager)


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteractiveShell]:
    """The shell of this process, without a history file."""
    config = Config()
    config.HistoryManager.enabled = False
    yield InteractiveShell.instance(config=config, ipython_dir=str(tmp_path_factory.mktemp("ipython")))
    InteractiveShell.clear_instance()


@pytest.fixture
def notebook(
    tmp_path: Path, portal: BlockingPortal, shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Notebook]:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    async def connect() -> AsyncManager:
        return await AsyncManager.open(
            data_dir=tmp_path / "data",
            runtime_dir=tmp_path / "run",
            pools=[PoolSpec(name="memory", address=f"memory://{tmp_path.name}")],
        )

    session = Session(connect, "notebook-1")
    register(shell, session, portal.start_task_soon)
    yield Notebook(shell, session, portal)

    async def clean() -> None:
        manager = await session.manager()
        for info in await manager.list():
            await manager.remove(info.uid)
        await manager.close()

    portal.call(clean)
    unload_ipython_extension(shell)
    shell.reset()
