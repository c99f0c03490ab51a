"""notebooks/files.ipynb, as people run it: pandas reads from a sandbox in a real kernel."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from nbclient import NotebookClient
from traitlets.config import Config

from tests.jupyter.kernels import environment, stop_daemon
from tests.rig.require import require

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "files.ipynb"


@pytest.fixture(params=["embedded", "docker"])
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    require(request.param)
    found = (os.environ.get("SANDBOX_TEST_LOCAL_ADDR") or "local") if request.param == "docker" else "embedded"
    for name, value in environment(tmp_path, found).items():
        monkeypatch.setenv(name, value)
    yield found
    stop_daemon(tmp_path, found)


def test_the_notebook_about_files_runs_to_its_end(address: str, tmp_path: Path) -> None:
    notebook: Any = nbformat.read(NOTEBOOK, as_version=4)
    (tmp_path / "here").mkdir()
    with tempfile.TemporaryDirectory(prefix="yaosb-") as sockets:
        NotebookClient(
            notebook,
            config=Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/kernel"}}),
            timeout=100,
            kernel_name="python3",
            resources={"metadata": {"path": str(tmp_path / "here")}},
        ).execute()
    shown = {cell["id"]: "".join(map(_text, cell.get("outputs", ()))) for cell in notebook.cells}
    assert "1000" in shown["pandas"]
    positive = int(shown["write"]) - 1
    assert shown["pathlib"].splitlines()[0] == "x,sine"
    assert shown["pathlib"].splitlines()[1].split() == ["data.csv", "out/positive.csv", "26"]
    assert "lab:data.csv -> tables/data.csv" in shown["copies"]
    assert "out/" in shown["listing"]
    brought = pd.read_csv(tmp_path / "here/tables/positive.csv")
    assert len(brought) == positive
    assert brought["sine"].min() > 0


def _text(output: Any) -> str:
    return str(output.get("text") or output.get("data", {}).get("text/plain", ""))
