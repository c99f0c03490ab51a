"""The quickstart, as `make quickstart` runs it, on each kind of pool a user may have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.jupyter.kernels import environment, stop_daemon
from tests.rig.require import require

RUNNER = Path(__file__).parents[2] / "notebooks" / "run_quickstart.py"


@pytest.mark.parametrize("runtime", ["embedded", "docker"])
def test_the_quickstart_runs_to_its_end(runtime: str, tmp_path: Path) -> None:
    require(runtime)
    address = (os.environ.get("SANDBOX_TEST_LOCAL_ADDR") or "local") if runtime == "docker" else runtime
    try:
        done = subprocess.run(
            [sys.executable, str(RUNNER), "--output", str(tmp_path / "out")],
            env={**os.environ, **environment(tmp_path, address)},
            capture_output=True,
            text=True,
            timeout=110,
        )
    finally:
        stop_daemon(tmp_path, address)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "epoch 12/12" in done.stdout
    assert "removed: quickstart" in done.stdout

    metrics = json.loads((tmp_path / "out/metrics.json").read_text())
    assert metrics["accuracy"] > 0.9
    assert sum(map(sum, metrics["confusion"])) == 397
    assert (tmp_path / "out/weights.png").read_bytes().startswith(b"\x89PNG")

    executed = nbformat.read(tmp_path / "out/quickstart.ipynb", as_version=4)
    (walls,) = [cell for cell in executed.cells if "attempt(" in cell.source]
    told = "".join(output.text for output in walls.outputs)
    for attempt in ("read a file of the notebook", "write to the system", "talk to the host's Docker engine"):
        (line,) = [line for line in told.splitlines() if line.startswith(attempt)]
        assert "refused" in line
