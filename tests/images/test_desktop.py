"""What `vnc()` tells and gives, and to whom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.contract.box import eventually
from tests.rig.require import TEST_IMAGE
from yaosb_jupyter import AsyncManager, tai
from yaosb_jupyter.choices import VncStatus
from yaosb_jupyter.core.names import new_id, new_uid
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import NotRunningError
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec
from yaosb_jupyter.types import Desktop

pytestmark = pytest.mark.docker


async def ready(sandbox: AsyncSandbox) -> Desktop:
    async def is_ready() -> bool:
        return (await sandbox.vnc()).status is VncStatus.READY

    await eventually(is_ready, within=30)
    return await sandbox.vnc()


@pytest.fixture
async def sandbox(manager: AsyncManager) -> AsyncSandbox:
    return await manager.create("desk", vnc=True, network="none")


@pytest.fixture
async def browser() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
        yield client


async def test_it_is_told_whether_it_can_be_looked_at(manager: AsyncManager) -> None:
    plain = await manager.create("plain")
    assert await plain.vnc() == Desktop(status=VncStatus.NOT_SUPPORTED)

    sandbox = await manager.create("desk", vnc=True, start=False)
    assert (await sandbox.vnc()) == Desktop(status=VncStatus.UNAVAILABLE)
    assert (await plain.info()).vnc_status is None
    assert (await sandbox.info()).vnc_status is VncStatus.UNAVAILABLE
    await sandbox.start()
    assert (await sandbox.vnc()).status in (VncStatus.STARTING, VncStatus.READY)
    desktop = await ready(sandbox)
    assert desktop.url.startswith("ws://127.0.0.1:")
    assert await sandbox.vnc() == desktop
    assert (await sandbox.info()).vnc_status is VncStatus.READY

    await sandbox.exec("pkill -STOP -f services/[d]esktop; pkill x11vnc", check=True)
    assert (await sandbox.vnc()).status is VncStatus.STARTING
    await sandbox.stop()
    assert (await sandbox.vnc()).status is VncStatus.UNAVAILABLE


async def test_an_image_without_a_desktop_is_told_at_once(manager: AsyncManager) -> None:
    sandbox = await manager.create("plain", vnc=True, image=TEST_IMAGE)
    assert (sandbox.last_info.vnc, sandbox.last_info.vnc_status) == (False, None)
    assert sandbox.last_info.warnings == (f"vnc: there is no desktop, since image '{TEST_IMAGE}' has none to show",)


async def test_the_bytes_of_vnc_are_carried_both_ways(sandbox: AsyncSandbox) -> None:
    desktop = await ready(sandbox)
    async with connect(desktop.url, proxy=None, subprotocols=["binary"]) as socket:
        assert socket.subprotocol == "binary"
        assert await socket.recv() == b"RFB 003.008\n"
        await socket.send(b"RFB 003.")
        await socket.send(b"008\n")
        assert await socket.recv() == b"\x01\x01"  # one way to log in: none
        await socket.send(b"\x01")
        assert await socket.recv() == b"\x00\x00\x00\x00"
        await socket.send(b"\x01")
        head = await socket.recv()
        assert isinstance(head, bytes)
        assert head[:4] == b"\x05\x00\x03\x20"  # 1280 x 800


async def test_whoever_stops_the_server_ends_the_connection(sandbox: AsyncSandbox) -> None:
    desktop = await ready(sandbox)
    async with connect(desktop.url, proxy=None) as socket:
        assert await socket.recv() == b"RFB 003.008\n"
        await sandbox.stop()
        async with asyncio.timeout(20):
            await socket.wait_closed()
    with pytest.raises(InvalidStatus):
        await connect(desktop.url, proxy=None)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example", "file://"])
async def test_pages_of_others_are_refused(origin: str, sandbox: AsyncSandbox) -> None:
    desktop = await ready(sandbox)
    with pytest.raises(InvalidStatus) as caught:
        await connect(desktop.url, proxy=None, additional_headers={"Origin": origin})
    assert caught.value.response.status_code == 403
    async with connect(desktop.url, proxy=None, additional_headers={"Origin": "http://localhost:8888"}) as socket:
        assert await socket.recv() == b"RFB 003.008\n"


async def test_without_the_secret_there_is_nothing(sandbox: AsyncSandbox, browser: httpx.AsyncClient) -> None:
    desktop = await ready(sandbox)
    token = httpx.URL(desktop.page).path.strip("/")
    for wrong in (token[:-1] + ("A" if token[-1] != "A" else "B"), "A" * 43, "websocket"):
        with pytest.raises(InvalidStatus) as caught:
            await connect(desktop.url.replace(token, wrong), proxy=None)
        assert caught.value.response.status_code == 404
        assert (await browser.get(desktop.page.replace(token, wrong))).status_code == 404
    # The port's own path is another secret, and shows no desktop.
    assert token not in await sandbox.proxy(5900)


async def test_the_page_is_ours_and_loads_nothing_else(sandbox: AsyncSandbox, browser: httpx.AsyncClient) -> None:
    page = (await sandbox.vnc()).page
    found = await browser.get(page)
    assert found.headers["content-type"].startswith("text/html")
    assert "script-src 'self'" in found.headers["content-security-policy"]
    assert (await browser.get(f"{page}novnc/core/rfb.js")).headers["content-type"].startswith("text/javascript")
    assert "Mozilla" in (await browser.get(f"{page}novnc/LICENSE.txt")).text
    for path in ("..%2fdesktop.py", "novnc/../../desktop.py", "novnc", "websocket/"):
        assert (await browser.get(page + path)).status_code == 404
    assert (await browser.get(f"{page}websocket")).status_code == 400
    assert (await browser.post(page)).status_code == 404


async def test_a_host_without_a_manager_shows_it_too(tmp_path: Path) -> None:
    async with await tai.open("local") as host:
        spec = EnvironmentSpec(
            uid=new_uid(),
            name=f"yao-sb-{new_id()}",
            image=await host.runtime.default_image(desktop=True),
            labels={},
            directory=tmp_path / "one",
            workspace=tmp_path / "one/workspace",
        )
        await asyncio.to_thread(spec.workspace.mkdir, parents=True)
        runtime_id = await host.runtime.create(spec)
        try:
            with pytest.raises(NotRunningError):
                await host.vnc(runtime_id)
            await host.runtime.start(runtime_id)

            async def is_ready() -> bool:
                return (await host.vnc(runtime_id)).status is VncStatus.READY

            await eventually(is_ready, within=30)
            async with connect((await host.vnc(runtime_id)).url, proxy=None) as socket:
                assert await socket.recv() == b"RFB 003.008\n"
        finally:
            await host.runtime.remove(runtime_id)
            await host.runtime.remove_workspace(spec)
