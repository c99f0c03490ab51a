"""Volumes with more than a directory behind them: a daemon in front, an engine without a guest in between."""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from tests.contract.workspaces import Rig
from tests.rig.require import TEST_IMAGE
from yaosb_jupyter.core.service import Service
from yaosb_jupyter.daemon.control import Control
from yaosb_jupyter.daemon.line import Line
from yaosb_jupyter.daemon.server import Server
from yaosb_jupyter.daemon.volume import RemoteVolume
from yaosb_jupyter.link.connection import dial_unix
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.tai.volumes.local import LocalVolume


class OneSandbox:
    """As much of a service as files need."""

    def __init__(self, volume: Volume) -> None:
        self._volume = volume

    def volume(self, _: str) -> Volume:
        return self._volume


@asynccontextmanager
async def served(workspace: Path) -> AsyncIterator[Rig]:
    """Through a daemon's server and the line of its client."""
    service = OneSandbox(LocalVolume(workspace, sandbox="box"))
    with tempfile.TemporaryDirectory(prefix="yaosb-served-") as place:
        path = Path(place) / "control.sock"
        server = Server(path, "secret", lambda: cast(Service, service), Control())
        await server.open()
        line = Line(lambda: dial_unix(path, {"secret": "secret"}))
        try:
            yield Rig(volume=RemoteVolume(line, "box"), pids=(os.getpid(),))
        finally:
            await line.close()
            await server.close("the test is over")


@asynccontextmanager
async def archived(workspace: Path) -> AsyncIterator[Rig]:
    """Through the engine's archive of a container without a guest, whose volume is ``workspace``; its user is root."""
    from yaosb_jupyter.tai.runtimes.docker import DockerRuntime

    uid = f"01ARCHIVE{secrets.token_hex(8).upper()}"
    name = f"yaosb-{uid.lower()}"
    await _docker("volume", "create", "--opt=type=none", "--opt=o=bind", f"--opt=device={workspace}", name)
    with tempfile.TemporaryDirectory(prefix="yaosb-archive-") as place:
        directory = Path(place)
        (directory / "run").mkdir()
        options = {"probe_image": TEST_IMAGE, "shared_files": "no", "link": "engine"}
        runtime = DockerRuntime("local", options, directory / "run")
        await runtime.open()
        fields: dict[str, Any] = {"image": TEST_IMAGE, "directory": directory / uid, "workspace": Path()}
        labels = {"managed-by": "yao-sandbox", "sandbox-uid": uid}
        spec = EnvironmentSpec(uid=uid, name=f"yao-sb-test-{uid.lower()}", labels=labels, user="root", **fields)
        runtime_id = await runtime.create(spec)
        try:
            await runtime.start(runtime_id)
            yield Rig(
                volume=runtime.volume(spec, runtime_id), pids=(os.getpid(),), sandbox=runtime_id, host_paths=False
            )
        finally:
            await runtime.remove(runtime_id)
            await runtime.remove_workspace(spec)
            await runtime.close()


async def _docker(*arguments: str) -> None:
    process = await asyncio.create_subprocess_exec("docker", *arguments, stdout=asyncio.subprocess.DEVNULL)
    assert await process.wait() == 0
