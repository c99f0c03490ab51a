"""A sandbox's desktop in a real browser, by noVNC: it is seen, typed into, and shows what came of it."""

from __future__ import annotations

import asyncio
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from matplotlib.image import imread

from tests.contract.box import eventually
from tests.rig.require import require
from yaosb_jupyter import AsyncManager
from yaosb_jupyter.choices import VncStatus
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.settings import Settings, load_settings

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

pytestmark = pytest.mark.docker

# An area of a colour that nothing else here has, drawn by the terminal itself.
TYPED = "printf '\\033[48;2;255;0;200m%1000s\\033[0m\\n' '' && echo it is typed > typed.txt && cat typed.txt"
COLOUR = (255, 0, 200)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    require("our-images")
    address = os.environ.get("SANDBOX_TEST_LOCAL_ADDR") or "local"
    return load_settings(environ={}, file=os.devnull, data_dir=tmp_path / "data", tai_addr=address, stop_timeout=1)


async def share(page: Page, colour: tuple[int, int, int]) -> float:
    """Of the page's pixels, how many have that colour."""
    picture = await page.screenshot()
    pixels = await asyncio.to_thread(imread, io.BytesIO(picture))
    near = abs(pixels[:, :, :3] - [value / 255 for value in colour]).max(axis=2) < 0.04
    return float(near.mean())


async def ready(sandbox: AsyncSandbox) -> str:
    async def is_ready() -> bool:
        return (await sandbox.vnc()).status is VncStatus.READY

    await eventually(is_ready, within=30)
    return (await sandbox.vnc()).page


async def test_the_desktop_is_seen_and_typed_into(context: BrowserContext, settings: Settings, tmp_path: Path) -> None:
    async with AsyncManager.open(settings) as manager:
        sandbox = await manager.create("desk", vnc=True, network="none")
        try:
            page = await context.new_page()
            said: list[str] = []
            page.on("console", lambda message: said.append(message.text))
            page.on("requestfailed", lambda request: said.append(f"{request.url}: {request.failure}"))
            await page.goto(await ready(sandbox))
            try:
                await page.wait_for_selector("#told", state="hidden")
            except Exception as error:
                error.add_note(f"the page says {await page.inner_text('#words')!r}, the browser {said}")
                raise

            async def shows(colour: tuple[int, int, int], least: float) -> None:
                async def is_seen() -> bool:
                    return await share(page, colour) > least

                await eventually(is_seen, within=30, what=f"{colour} to be seen; {said}")

            await shows((0x11, 0x16, 0x1C), 0.1)  # the terminal
            await shows((0x4A, 0x5A, 0x6B), 0.1)  # the desktop behind it
            await page.mouse.click(300, 250)  # into the terminal
            await page.keyboard.type(TYPED)
            await page.keyboard.press("Enter")
            await shows(COLOUR, 0.03)

            async def is_there() -> bool:
                return (await sandbox.exec("cat typed.txt")).stdout == "it is typed\n"

            await eventually(is_there)
            shown = Path(os.environ.get("YAOSB_SCREENSHOTS") or tmp_path) / "desktop.png"
            await page.screenshot(path=shown)

            await sandbox.stop()
            await page.wait_for_selector("text=Connect again")
        finally:
            await sandbox.remove()


async def test_a_page_of_another_site_does_not_see_it(context: BrowserContext, settings: Settings) -> None:
    async with AsyncManager.open(settings) as manager:
        sandbox = await manager.create("desk", vnc=True, network="none")
        try:
            await ready(sandbox)
            url = (await sandbox.vnc()).url
            page = await context.new_page()
            await context.route("http://other.example/", lambda route: route.fulfill(body="another site"))
            await page.goto("http://other.example/")
            told = await page.evaluate(
                """url => new Promise(told => {
                    const socket = new WebSocket(url);
                    socket.onopen = () => told("opened");
                    socket.onclose = event => told("closed " + event.code);
                })""",
                url,
            )
            assert told == "closed 1006"
        finally:
            await sandbox.remove()
