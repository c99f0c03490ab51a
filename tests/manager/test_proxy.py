"""URLs of what runs in sandboxes, in process and through the daemon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from tests.manager.clocks import ManualClock
from tests.manager.conftest import OpenManager
from tests.manager.rigs import DockerRig, EmbeddedRig, MemoryRig, Rig
from tests.manager.waiting import until
from tests.manager.web import Web, serving
from tests.rig.require import require
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.errors import InvalidOptionError, NotAvailableError, NotFoundError, NotRunningError

SANDBOXES = [
    pytest.param(EmbeddedRig, id="embedded", marks=pytest.mark.embedded),
    pytest.param(DockerRig, id="docker", marks=pytest.mark.docker),
]


@pytest.fixture(autouse=True)
def _embedded_reaches_ports_by_namespaces(request: pytest.FixtureRequest) -> None:
    if "rig" in request.fixturenames and isinstance(request.getfixturevalue("rig"), EmbeddedRig):
        require("bubblewrap")


@pytest.fixture
async def browser() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
        yield client


@pytest.fixture
async def web(manager: AsyncManager) -> AsyncIterator[Web]:
    """In a sandbox without any network."""
    async with serving(await manager.create("lab")) as web:
        yield web


@pytest.mark.parametrize("port", ["80", None, 0, 65536])
async def test_what_is_no_port_is_refused(open_on_memory: OpenManager, port: Any) -> None:
    sandbox = await (await open_on_memory()).create("lab")
    with pytest.raises(InvalidOptionError, match="port="):
        await sandbox.proxy(port)
    with pytest.raises(InvalidOptionError, match="port="):
        await sandbox.dial(port)


@pytest.mark.parametrize("rig", SANDBOXES, indirect=True)
async def test_a_web_application_is_reached_by_a_url(web: Web, browser: httpx.AsyncClient) -> None:
    url = await web.sandbox.proxy(web.port)
    assert url.startswith("http://127.0.0.1:")
    assert (await browser.get(url)).text == "hello from inside"
    assert (await browser.get(f"{url}login", follow_redirects=True)).text == "hello from inside"
    headers = httpx.Headers((await browser.get(await web.sandbox.proxy(web.port, "headers?all=1"))).json())
    assert headers["Host"] == f"localhost:{web.port}"
    assert headers["X-Forwarded-Prefix"] == httpx.URL(url).path.rstrip("/")
    assert (await browser.post(f"{url}echo", content=b"body" * 100_000)).content == b"body" * 100_000
    events = await browser.get(f"{url}events")
    assert events.text.count("data: event-") == 5
    async with connect(url.replace("http", "ws") + "ws", proxy=None, subprotocols=["echo"]) as socket:
        assert socket.subprotocol == "echo"
        await socket.send("word" * 50_000)
        assert await socket.recv() == "word" * 50_000


@pytest.mark.parametrize("rig", SANDBOXES, indirect=True)
async def test_n1_the_address_that_an_application_is_told_works_inside(web: Web, browser: httpx.AsyncClient) -> None:
    """Not the proxy's, on a loopback that is not its own."""
    headers = httpx.Headers((await browser.get(await web.sandbox.proxy(web.port, "/headers"))).json())
    code = f"from urllib.request import urlopen; print(urlopen('http://{headers['Host']}/').read().decode())"
    assert (await web.sandbox.exec(["python3", "-c", code], check=True)).stdout == "hello from inside\n"


@pytest.mark.docker
@pytest.mark.parametrize("rig", [DockerRig], indirect=True, ids=["docker"])
@pytest.mark.parametrize("link", ["", "engine"], ids=["guest", "no guest"])
async def test_a_published_port_is_reached_as_well(
    open_manager: OpenManager, rig: Rig, browser: httpx.AsyncClient, link: str
) -> None:
    """Without a guest it is reached where the engine has published it."""
    manager = await open_manager(pools=rig.pools("default", options={"link": link} if link else {}))
    sandbox = await manager.create("lab", ports=[8080, 9090], network="bridge")
    async with serving(sandbox, 8080, 9090, host="0.0.0.0"):
        assert (await browser.get(await sandbox.proxy(8080))).text == "hello from inside"
        async with await sandbox.dial(9090) as connection:
            await connection.send(b"word")
            assert await connection.receive() == b"word"


@pytest.mark.parametrize("rig", SANDBOXES, indirect=True)
async def test_where_nothing_listens_the_page_says_so_until_something_does(
    web: Web, browser: httpx.AsyncClient
) -> None:
    url = await web.sandbox.proxy(5999)
    page = await browser.get(url)
    assert page.status_code == 502
    assert "port 5999 of sandbox lab" in page.text
    async with serving(web.sandbox, 5999):
        assert (await browser.get(url)).text == "hello from inside"


@pytest.mark.parametrize("rig", SANDBOXES, indirect=True)
async def test_a_stop_revokes_the_links_and_ends_what_goes_on(web: Web, browser: httpx.AsyncClient) -> None:
    url = await web.sandbox.proxy(web.port)
    async with connect(url.replace("http", "ws") + "ws", proxy=None) as socket:
        await web.sandbox.stop(0)
        await socket.wait_closed()
    assert (await browser.get(url)).status_code == 404
    with pytest.raises(NotRunningError):
        await web.sandbox.proxy(web.port)
    await web.sandbox.start()
    assert (await browser.get(url)).status_code == 404
    assert await web.sandbox.proxy(web.port) != url


@pytest.mark.parametrize("rig", SANDBOXES, indirect=True)
async def test_one_sandboxs_link_outlives_another_sandbox(
    web: Web, manager: AsyncManager, browser: httpx.AsyncClient
) -> None:
    other = await manager.create("other")
    removed = await other.proxy(web.port)
    url = await web.sandbox.proxy(web.port)
    assert "port" in (await browser.get(removed)).text  # not the first one's: nothing listens in this one
    await other.remove()
    assert (await browser.get(removed)).status_code == 404
    assert (await browser.get(url)).status_code == 200
    with pytest.raises(NotFoundError):
        await other.proxy(80)


@pytest.mark.docker
@pytest.mark.parametrize("rig", [DockerRig], indirect=True, ids=["docker"])
async def test_without_a_guest_a_port_that_is_not_published_is_refused(open_manager: OpenManager, rig: Rig) -> None:
    manager = await open_manager(pools=rig.pools("default", options={"link": "engine"}))
    sandbox = await manager.create("lab")
    for ask in (sandbox.proxy, sandbox.attach, sandbox.dial):
        with pytest.raises(NotAvailableError, match="lab") as caught:
            await ask(8080)
        assert "publish them" in (caught.value.hint or "")


async def test_a_bad_port_and_a_bad_path_are_named(open_on_memory: OpenManager) -> None:
    sandbox = await (await open_on_memory()).create("lab")
    with pytest.raises(InvalidOptionError, match="port=0"):
        await sandbox.proxy(0)
    with pytest.raises(InvalidOptionError, match="path="):
        await sandbox.proxy(80, "/\n")


async def test_the_proxy_tells_that_it_is_up(open_on_memory: OpenManager, browser: httpx.AsyncClient) -> None:
    manager = await open_on_memory()
    sandbox = await manager.create("lab")
    url = await sandbox.proxy(80)
    health = await manager.proxy_healthz()
    assert url.startswith(f"{health.address}/")
    assert health.links == 1
    assert (await browser.get(f"{health.address}/healthz")).json() == {"status": "ok"}


@pytest.fixture
async def loopback_port() -> AsyncIterator[int]:
    """A web server on the host's loopback, which is that of a sandbox of the memory runtime."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_m13_bytes_that_move_through_it_are_use(
    open_on_memory: OpenManager, browser: httpx.AsyncClient, loopback_port: int
) -> None:
    clock = ManualClock()
    manager = await open_on_memory(clock=clock)
    sandbox = await manager.create("lab", idle_timeout="10m")
    url = await sandbox.proxy(loopback_port)
    for _ in range(3):
        clock.advance(599)
        assert (await browser.get(url)).text == "hello"
        assert list(await manager.cleanup()) == []


async def test_m14_a_page_that_finds_nobody_is_no_use(open_on_memory: OpenManager, browser: httpx.AsyncClient) -> None:
    clock = ManualClock()
    manager = await open_on_memory(clock=clock)
    sandbox = await manager.create("lab", idle_timeout="10m")
    url = await sandbox.proxy(1)
    for _ in range(2):
        clock.advance(299)
        assert (await browser.get(url)).status_code == 502
    clock.advance(3)
    await manager.cleanup()

    async def is_gone() -> bool:
        return not await manager.list()

    await until(is_gone)
    assert (await browser.get(url)).status_code == 404


async def test_m10_the_links_of_a_sandbox_that_somebody_removed_lead_nowhere(
    open_on_memory: OpenManager, memory_rig: MemoryRig, browser: httpx.AsyncClient, loopback_port: int
) -> None:
    sandbox = await (await open_on_memory()).create("lab")
    url = await sandbox.proxy(loopback_port)
    assert (await browser.get(url)).text == "hello"
    await asyncio.to_thread(memory_rig.vanish, sandbox.last_info.runtime_id)

    async def is_revoked() -> bool:
        return (await browser.get(url)).status_code == 404

    await until(is_revoked)
