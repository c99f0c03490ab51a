"""WebSockets, event streams and TCP to what runs in sandboxes, in process and through the daemon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.manager.conftest import OpenManager
from tests.manager.rigs import DockerRig, EmbeddedRig
from tests.manager.test_proxy import SANDBOXES
from tests.manager.web import Web, serving
from tests.rig.require import require
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.errors import (
    NotFoundError,
    NotRunningError,
    PortUnavailableError,
    ProtocolError,
    SandboxLostError,
)
from yaosb_jupyter.types import ServerEvent


@pytest.fixture(autouse=True)
def _embedded_reaches_ports_by_namespaces(request: pytest.FixtureRequest) -> None:
    if "rig" in request.fixturenames and isinstance(request.getfixturevalue("rig"), EmbeddedRig):
        require("bubblewrap")


@pytest.fixture
async def web(manager: AsyncManager) -> AsyncIterator[Web]:
    """In a sandbox without any network."""
    async with serving(await manager.create("lab")) as web:
        yield web


@pytest.mark.parametrize("rig", SANDBOXES, indirect=True)
async def test_all_protocols_through_an_unpublished_port(web: Web) -> None:
    await all_protocols(web)


@pytest.mark.docker
@pytest.mark.parametrize("rig", [DockerRig], indirect=True, ids=["docker"])
async def test_all_protocols_through_a_published_port(open_manager: OpenManager) -> None:
    sandbox = await (await open_manager()).create("lab", ports=[8080, 9090], network="bridge")
    async with serving(sandbox, 8080, 9090, host="0.0.0.0") as web:
        await all_protocols(web)


async def all_protocols(web: Web) -> None:
    sandbox = web.sandbox
    async with asyncio.timeout(30), await sandbox.attach(web.port, path="/ws", subprotocols=["echo"]) as socket:
        assert socket.subprotocol == "echo"
        await socket.write("hello")
        await socket.write(b"\x00" * 70_000)
        assert await socket.read() == "hello"
        assert await socket.read() == b"\x00" * 70_000
    async with asyncio.timeout(30), await sandbox.attach(web.port, "sse", path="/events") as stream:
        assert [event async for event in stream] == [ServerEvent(data=f"event-{n}", id=str(n)) for n in range(5)]
        with pytest.raises(ProtocolError, match="one way"):
            await stream.write("word")
    async with asyncio.timeout(30), await sandbox.attach(web.tcp, "tcp") as connection:
        await connection.write("word")
        assert await connection.read() == b"word"


@pytest.mark.parametrize("rig", SANDBOXES, indirect=True)
async def test_what_cannot_be_attached_is_told(web: Web) -> None:
    with pytest.raises(
        ProtocolError, match=r"port \d+ takes no WebSocket at /nothing: status 404.*no such page"
    ) as told:
        await web.sandbox.attach(web.port, path="/nothing")
    assert told.value.sandbox == "lab"
    with pytest.raises(ProtocolError, match=r"text/plain.*hello from inside"):
        await web.sandbox.attach(web.port, "sse")
    with pytest.raises(PortUnavailableError, match="port 5999: nothing listens") as refused:
        await web.sandbox.attach(5999)
    assert refused.value.hint


@pytest.mark.parametrize("rig", SANDBOXES, indirect=True)
async def test_the_end_of_a_sandbox_ends_them(web: Web) -> None:
    socket = await web.sandbox.attach(web.port, path="/ws")
    connection = await web.sandbox.attach(web.tcp, "tcp")
    await connection.write("word")
    assert await connection.read() == b"word"
    await web.sandbox.stop(0)
    async with asyncio.timeout(20):
        for attached in (socket, connection):
            try:
                assert await attached.read() is None  # type: ignore[attr-defined]
            except (PortUnavailableError, SandboxLostError):
                pass  # its server was killed first, or its link
            await attached.close()  # type: ignore[attr-defined]
    with pytest.raises(NotRunningError):
        await web.sandbox.attach(web.port)
    await web.sandbox.remove()
    with pytest.raises(NotFoundError):
        await web.sandbox.attach(web.port, "tcp")


@pytest.mark.parametrize("rig", SANDBOXES[:1], indirect=True)
async def test_letting_go_of_a_sandbox_closes_what_was_attached(web: Web, manager: AsyncManager) -> None:
    handle = await manager.get("lab")
    attached = [await handle.attach(web.port, path="/ws"), await handle.attach(web.tcp, "tcp")]
    await handle.close()
    assert [await each.read() for each in attached] == [None, None]  # type: ignore[attr-defined]
