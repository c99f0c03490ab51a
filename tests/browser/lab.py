"""A JupyterLab of a test's own."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 120


@contextmanager
def jupyter_lab(root: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Serves the notebooks in ``root / "work"``; gives its address."""
    settings = root / "settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"fetchNews": "false", "checkForUpdates": False}))
    (root / "work").mkdir(exist_ok=True)
    names = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTER_DATA_DIR": "jupyter",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    }
    env = {**os.environ, **environ, **{name: str(root / directory) for name, directory in names.items()}}
    flags = ["--no-browser", "--allow-root", "--port=0", "--ip=127.0.0.1", "--IdentityProvider.token="]
    argv = [sys.executable, "-m", "jupyterlab", *flags, "--LabApp.expose_app_in_browser=True"]
    log = root / "lab.log"
    with log.open("w") as output:
        server = subprocess.Popen(argv, cwd=root / "work", env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert server.stderr is not None
        try:
            yield _address(server)
        finally:
            server.terminate()
            output.write(server.communicate(timeout=PATIENCE)[1].decode(errors="replace"))


def _address(server: subprocess.Popen[bytes]) -> str:
    assert server.stderr is not None
    said = b""
    while select.select([server.stderr], [], [], PATIENCE)[0]:
        piece = os.read(server.stderr.fileno(), 65536)
        said += piece
        if match := re.search(rb"http://127\.0\.0\.1:\d+/lab", said):
            return match[0].decode().removesuffix("/lab")
        if not piece:
            break
    raise AssertionError(f"JupyterLab does not start: {said.decode(errors='replace')}")


def write_notebook(path: Path, *cells: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    code = [
        {"cell_type": "code", "id": f"c{n}", "metadata": {}, "source": cell, "outputs": [], "execution_count": None}
        for n, cell in enumerate(cells)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.write_text(json.dumps({"cells": code, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))
