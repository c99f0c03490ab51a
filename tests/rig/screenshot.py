"""Remakes docs/images/quickstart.png: the quickstart's own output, seen in JupyterLab.

    .venv/bin/python notebooks/run_quickstart.py
    PYTHON_WITH_PLAYWRIGHT tests/rig/screenshot.py [--dark]

Needs playwright (not among the development requirements) and a Chromium (Debian: chromium).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
EXECUTED = ROOT / "build/quickstart/quickstart.ipynb"
SHOWN = ["create", "run", "results"]
FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Only the cells, at their full height.
CSS = """
.jp-NotebookPanel-toolbar, .jp-cell-toolbar, .jp-Notebook-footer,
#jp-top-panel, #jp-menu-panel, #jp-bottom-panel { display: none !important; }
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--cells", nargs="*", default=SHOWN, help="ids of cells")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/images/quickstart.png")
    parser.add_argument("--chromium", default=shutil.which("chromium") or "chromium")
    args = parser.parse_args()
    args.output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="yaosb-shot-") as directory:
        root = Path(directory)
        write_notebook(root / "work/sandbox.ipynb", args.cells)
        with jupyter_lab(root, dark=args.dark) as url:
            take(f"{url}/doc/tree/sandbox.ipynb", args.output, args.chromium)
    print(args.output)


def write_notebook(path: Path, ids: list[str]) -> None:
    notebook = json.loads(EXECUTED.read_text())
    cells = {cell["id"]: cell for cell in notebook["cells"]}
    notebook["cells"] = [cells[name] for name in ids]
    for cell in notebook["cells"]:
        cell["metadata"] = {"trusted": True}
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook))


@contextlib.contextmanager
def jupyter_lab(root: Path, *, dark: bool) -> Iterator[str]:
    """A server with settings of its own, and its address."""
    settings = root / "settings/@jupyterlab"
    theme = {"theme": "JupyterLab Dark" if dark else "JupyterLab Light"}
    for name, content in (
        ("apputils-extension/notification", {"fetchNews": "false", "checkForUpdates": False}),
        ("apputils-extension/themes", theme),
        ("notebook-extension/tracker", {"windowingMode": "none"}),
    ):
        file = settings / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))
    env = {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(root / "config"),
        "JUPYTER_RUNTIME_DIR": str(root / "runtime"),
        "JUPYTER_DATA_DIR": str(root / "data"),
        "JUPYTERLAB_SETTINGS_DIR": str(root / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(root / "workspaces"),
        "IPYTHONDIR": str(root / "ipython"),
    }
    jupyter = str(ROOT / ".venv/bin/jupyter")
    subprocess.run([jupyter, "trust", str(root / "work/sandbox.ipynb")], env=env, check=True, capture_output=True)
    argv = [jupyter, "lab", "--no-browser", "--allow-root", "--port=0", "--IdentityProvider.token=", "--ip=127.0.0.1"]
    with subprocess.Popen(argv, cwd=root / "work", env=env, stderr=subprocess.PIPE, text=True) as server:
        try:
            yield address(server)
        finally:
            server.terminate()


def address(server: subprocess.Popen[str]) -> str:
    assert server.stderr is not None
    while select.select([server.stderr], [], [], 60)[0]:
        line = server.stderr.readline()
        if match := re.search(r"http://127\.0\.0\.1:\d+", line):
            return match[0]
        if not line:
            break
    raise SystemExit("jupyter lab does not start")


def take(url: str, output: Path, chromium: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 1040, "height": 900}, device_scale_factor=1.5)
        page.goto(url)
        page.wait_for_function("getComputedStyle(document.body).getPropertyValue('--jp-ui-font-size1')", timeout=60_000)
        page.wait_for_selector(".jp-OutputArea-output", timeout=60_000)
        page.wait_for_function("document.querySelector('.jp-mod-splash, #jupyterlab-splash') === null")
        page.add_style_tag(content=CSS)
        cells = page.locator(".jp-Cell")
        height = cells.last.bounding_box()["y"] + cells.last.bounding_box()["height"]
        page.set_viewport_size({"width": 1040, "height": int(height) + 60})
        page.wait_for_timeout(500)
        first, last = cells.first.bounding_box(), cells.last.bounding_box()
        clip = {"x": first["x"], "y": first["y"], "width": first["width"]}
        clip["height"] = last["y"] + last["height"] - first["y"]
        page.screenshot(path=str(output), clip=clip)
        browser.close()


if __name__ == "__main__":
    main()
