"""What is told of each container holds for that container."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.docker.conftest import MakeBox
from yaosb_jupyter.choices import Network
from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.tai.runtimes.docker import DockerRuntime
from yaosb_jupyter.types import Isolation

pytestmark = pytest.mark.docker


async def told(runtime: DockerRuntime, make_box: MakeBox, **fields: Any) -> Isolation:
    box = await make_box(runtime, start=False, **fields)
    return await runtime.isolation(box.spec, box.runtime_id)


async def test_a_plain_container_is_as_its_pool_tells(runtime: DockerRuntime, make_box: MakeBox) -> None:
    assert await told(runtime, make_box, network=Network.BRIDGE) == runtime._parts.info.isolation


@pytest.mark.parametrize("user", ["root", "0", "0:0"])
async def test_root_is_told(runtime: DockerRuntime, make_box: MakeBox, user: str) -> None:
    isolation = await told(runtime, make_box, user=user)
    assert "ROOT" in isolation.means
    assert "unprivileged" not in isolation.means


async def test_a_named_user_is_told(runtime: DockerRuntime, make_box: MakeBox) -> None:
    assert "as user nobody (uid 65534)" in (await told(runtime, make_box, user="nobody")).means


async def test_without_network_nothing_is_told_as_reachable(runtime: DockerRuntime, make_box: MakeBox) -> None:
    isolation = await told(runtime, make_box, network=Network.NONE)
    assert (isolation.internet, isolation.host, isolation.lan) == ("none", "none", "none")


async def test_a_directory_of_the_host_is_told(runtime: DockerRuntime, make_box: MakeBox, directory: Path) -> None:
    work = mine(directory)
    isolation = await told(runtime, make_box, workspace=work)
    assert str(work) in isolation.files
    assert "workspace" in isolation.unix_sockets


@pytest.mark.parametrize("path", ["/run", "/etc"])
@pytest.mark.parametrize("user", ["root", ""])
async def test_a_workspace_of_the_systems_is_refused(
    runtime: DockerRuntime, make_box: MakeBox, path: str, user: str
) -> None:
    with pytest.raises(InvalidOptionError, match="is the system's"):
        await make_box(runtime, workspace=Path(path), user=user)


async def test_a_workspace_with_a_socket_is_refused(runtime: DockerRuntime, make_box: MakeBox, directory: Path) -> None:
    work = mine(directory)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(work / "s"))
        with pytest.raises(InvalidOptionError, match="holds a socket"):
            await make_box(runtime, workspace=work)


def mine(directory: Path) -> Path:
    work = directory / "mine"
    work.mkdir()
    if os.geteuid() == 0:
        os.chown(work, 1234, 1234)
    return work
