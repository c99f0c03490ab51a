"""A real browser: Debian's Chromium, by playwright."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

from tests.rig.require import chromium, require

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    *(["--no-sandbox"] if os.geteuid() == 0 else []),
]


@pytest.fixture
async def context() -> AsyncIterator[BrowserContext]:
    """A browser without a past."""
    require("browser")
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield await browser.new_context(viewport={"width": 900, "height": 600})
        await browser.close()
