"""Runs quickstart.ipynb cell by cell, shows what it shows, and keeps the executed copy: `make quickstart`.

    python notebooks/run_quickstart.py [--output DIR]

Where the sandboxes run is decided as everywhere: `YAO_TAI_ADDR`, else a reachable Docker engine, else embedded.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from traitlets.config import Config

from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.settings import load_settings
from yaosb_jupyter.tai.client import open_host
from yaosb_jupyter.tai.runtimes.base import Capability
from yaosb_jupyter.types import PoolSpec

HERE = Path(__file__).resolve().parent
NOTEBOOK = HERE / "quickstart.ipynb"
DEFAULT_OUTPUT = HERE.parent / "build" / "quickstart"


class Narrator(NotebookClient):
    """Executes a notebook, and tells on the terminal what its cells show while they run."""

    within_line = False

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        content = msg.get("content", {})
        if msg["msg_type"] == "stream":
            self.tell(content["text"])
        elif msg["msg_type"] in ("execute_result", "display_data"):
            self.tell(f"{_shown(content['data'])}\n")
        return super().process_message(msg, cell, cell_index)

    def tell(self, text: str) -> None:
        for line in text.splitlines(keepends=True):
            sys.stdout.write(line if self.within_line else f"    {line}")
            self.within_line = not line.endswith("\n")
        sys.stdout.flush()


def _shown(data: dict[str, str]) -> str:
    if "image/png" in data:
        return f"[a picture, {len(data['image/png']) * 3 // 4} bytes]"
    return data.get("text/plain", "")


def _beginning(source: str) -> str:
    lines = source.splitlines()
    kept = lines if len(lines) <= 3 else [*lines[:2], f"... {len(lines) - 2} more lines"]
    return "\n      ".join(kept)


async def without_image(pool: PoolSpec, image: str, runtime_dir: Path) -> str:
    """Why the pool's host has no image to make a sandbox of, though it was tried to pull one; empty where it has."""
    host = await open_host(pool, runtime_dir=runtime_dir)
    try:
        if Capability.IMAGES not in host.info.capabilities:
            return ""
        image = image or await host.runtime.default_image(desktop=False)
        if not await host.runtime.image_exists(image):
            print(f"pulling {image}", flush=True)
            await host.runtime.pull_image(image)
    except SandboxError as error:
        return str(error)
    finally:
        await host.close()
    return ""


def choose_pool() -> None:
    """Where nobody has chosen, an engine that cannot get an image is no choice."""
    settings = load_settings()
    (pool, *_) = settings.all_pools()
    if pool.address:
        return
    if reason := asyncio.run(without_image(pool, pool.image or settings.image, settings.runtime_dir)):
        print(f"there is a Docker engine, but no image: {reason}\nso it goes without (YAO_TAI_ADDR=embedded)")
        os.environ["YAO_TAI_ADDR"] = "embedded"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="where files and the executed copy go")
    output: Path = parser.parse_args().output.absolute()
    output.mkdir(parents=True, exist_ok=True)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    code = [index for index, cell in enumerate(notebook.cells) if cell.cell_type == "code"]

    def begin(cell: Any, cell_index: int) -> None:
        if cell.cell_type == "code":
            print(f"\n[{code.index(cell_index) + 1}/{len(code)}] {_beginning(cell.source)}", flush=True)

    began = time.monotonic()
    choose_pool()
    print(f"running {NOTEBOOK.relative_to(HERE.parent)} in {output}")
    sockets = tempfile.TemporaryDirectory(prefix="yaosb-")
    client = Narrator(
        notebook,
        config=Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets.name}/kernel"}}),
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(output)}},
        on_cell_start=begin,
    )
    try:
        client.execute()
    except CellExecutionError as error:
        print(
            f"\n{error}\nthe quickstart failed; without an engine: YAO_TAI_ADDR=embedded make quickstart",
            file=sys.stderr,
        )
        return 1
    finally:
        nbformat.write(notebook, output / NOTEBOOK.name)
        sockets.cleanup()
    print(f"\nall {len(code)} cells ran, in {time.monotonic() - began:.0f} s")
    print(f"  with its output:  {output / NOTEBOOK.name}")
    print(f"  what it brought:  {output / 'metrics.json'}, {output / 'weights.png'}")
    print(f"  try it yourself:  {Path(sys.executable).parent / 'jupyter'} lab {NOTEBOOK}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
