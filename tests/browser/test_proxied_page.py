"""An application of a sandbox in a real browser: it works, and is kept from everything else that the browser holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.manager.web import Web, serving
from tests.rig.require import TEST_IMAGE, require
from yaosb_jupyter.core.manager import AsyncManager

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Frame, Page

WORKS = [
    "origin: null",
    "websocket: hello by echo",
    "closed: 4001 seen",
    *(f"event: event-{number}" for number in range(5)),
    'fetched: {"a": 1}',
]
ISOLATED = ["cookie: SecurityError", "storage: SecurityError", "other: TypeError"]


class NotebookServer:
    """Stands for one, on another port of the same host: its cookie lets in, its pages show what the test puts there."""

    def __init__(self) -> None:
        self.page = "<title>notebook</title>the notebook's secret"
        self.cookies: list[str] = []
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.cookies += [line for line in head.splitlines() if line.lower().startswith("cookie:")]
        body = self.page.encode()
        kind = "Content-Type: text/html\r\nSet-Cookie: login=secret; Path=/\r\nConnection: close"
        writer.write(f"HTTP/1.1 200 OK\r\n{kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        writer.close()


@pytest.fixture
async def notebook() -> AsyncIterator[NotebookServer]:
    notebook = NotebookServer()
    server = await asyncio.start_server(notebook.answer, "127.0.0.1", 0)
    async with server:
        notebook.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        yield notebook


@pytest.fixture(
    params=[
        pytest.param("embedded", marks=pytest.mark.embedded),
        pytest.param("local", marks=pytest.mark.docker),
    ]
)
async def web(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Web]:
    if request.param == "embedded":
        require("bubblewrap")
    settings = {"tai_addr": request.param, "image": TEST_IMAGE if request.param == "local" else ""}
    async with AsyncManager.open(data_dir=tmp_path / "data", runtime_dir=tmp_path / "run", **settings) as manager:
        sandbox = await manager.create("lab")
        try:
            async with serving(sandbox) as web:
                yield web
        finally:
            await sandbox.remove()


async def lines(page: Page | Frame, expected: list[str]) -> list[str]:
    """What the page has written, once it is as much as expected, and whatever comes within a moment after."""
    script = "count => document.querySelectorAll('#log li').length >= count"
    await page.wait_for_function(script, arg=len(expected), timeout=20_000)
    await asyncio.sleep(0.2)  # an event too many would come now
    return await page.locator("#log li").all_inner_texts()


async def test_a_page_works_and_is_isolated(
    web: Web, notebook: NotebookServer, context: BrowserContext, tmp_path: Path
) -> None:
    own = await context.new_page()
    await own.goto(notebook.url)  # the browser has the notebook server's cookie from now on
    page = await context.new_page()
    url = await web.sandbox.proxy(web.port, f"/page?other={notebook.url}")
    response = await page.goto(url)
    assert response is not None
    assert response.status == 200
    expected = [*WORKS, "parent: inside", *ISOLATED]
    written = await lines(page, expected)
    await page.screenshot(path=str(tmp_path / "page.png"))
    assert sorted(written) == sorted(expected)
    assert [(cookie["name"], cookie["value"]) for cookie in await context.cookies()] == [("login", "secret")]
    await page.goto(await web.sandbox.proxy(web.port, "/headers"))
    assert "secret" not in await page.content()  # the browser sent it to the proxy, which shares the host


async def test_a_page_in_a_notebooks_page_reaches_nothing_of_it(
    web: Web, notebook: NotebookServer, context: BrowserContext, tmp_path: Path
) -> None:
    url = await web.sandbox.proxy(web.port, f"/page?other={notebook.url}")
    notebook.page = f'<title>notebook</title><iframe name="app" src="{url}" width="860" height="560"></iframe>'
    page = await context.new_page()
    await page.goto(notebook.url)
    frame = page.frame("app")
    assert frame is not None
    expected = [*WORKS, "parent: SecurityError", *ISOLATED]
    written = await lines(frame, expected)
    await page.screenshot(path=str(tmp_path / "frame.png"))
    assert sorted(written) == sorted(expected)
    assert await page.evaluate("document.querySelector('iframe').contentDocument") is None


async def test_a_page_of_ours_says_what_to_do(web: Web, context: BrowserContext, tmp_path: Path) -> None:
    page = await context.new_page()
    await page.goto(await web.sandbox.proxy(5999))
    await page.screenshot(path=str(tmp_path / "nothing.png"))
    assert "port 5999 of sandbox lab" in await page.inner_text("h1")
    assert "Start a server there" in await page.inner_text("body")
