"""An application of a sandbox, shown in a cell of JupyterLab."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.lab import jupyter_lab, write_notebook
from tests.browser.test_proxied_page import WORKS
from tests.jupyter.kernels import environment, stop_daemon
from tests.manager.web import PROGRAM
from tests.rig.require import require

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

SERVE = f"""
import yaosb_jupyter
lab = yaosb_jupyter.manager().get("lab")
lab.files.write("webserver.py", open({str(PROGRAM)!r}).read())
server = iter(lab.stream(["python3", "webserver.py", "8000", "9000"]))
next(server).data
"""
RUN = """async () => {
  const app = window.jupyterapp
  await app.restored
  const panel = await app.commands.execute("docmanager:open", {path: "notebook.ipynb", factory: "Notebook"})
  await panel.context.ready
  await panel.sessionContext.ready
  await app.commands.execute("notebook:run-all-cells")
}"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    require("browser", "bubblewrap")
    cells = ["%load_ext yaosb_jupyter\n%sandbox create lab", SERVE, "%sandbox proxy 8000 /page --show"]
    write_notebook(tmp_path / "work/notebook.ipynb", *cells)
    environ = environment(tmp_path, "embedded")
    try:
        with jupyter_lab(tmp_path, environ) as url:
            yield url
    finally:
        stop_daemon(tmp_path, "embedded")


@pytest.mark.embedded
@pytest.mark.timeout(300)  # JupyterLab starts, and with it a kernel
async def test_a_page_is_shown_in_a_cell(lab: str, context: BrowserContext, tmp_path: Path) -> None:
    page = await context.new_page()
    await page.goto(f"{lab}/lab")
    await page.wait_for_function("window.jupyterapp", timeout=90_000)
    await page.evaluate(RUN)
    frame = page.frame_locator("iframe.y-frame")
    await frame.locator("li", has_text="event: event-4").wait_for(timeout=90_000)
    await frame.locator("li", has_text="closed:").wait_for(timeout=20_000)
    await page.screenshot(path=str(tmp_path / "lab.png"))
    written = await frame.locator("li").all_inner_texts()
    assert set(WORKS) < set(written)
    assert {"parent: SecurityError", "cookie: SecurityError", "storage: SecurityError"} < set(written)
    link = page.locator(".yaosb a")
    assert (await link.get_attribute("href") or "").endswith("/page")
