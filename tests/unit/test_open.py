"""One host by its address, without a manager."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.manager.web import PROGRAM
from tests.rig.require import require
from yaosb_jupyter import tai
from yaosb_jupyter.errors import InvalidOptionError, NotFoundError, NotRunningError
from yaosb_jupyter.options import ExecOptions
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec


@pytest.mark.parametrize("address", ["", "  "])
async def test_an_empty_address_says_what_to_use(address: str) -> None:
    with pytest.raises(InvalidOptionError, match="local is the Docker engine"):
        await tai.open(address)


@pytest.mark.docker
@pytest.mark.parametrize("address", ["local", "localhost", "127.0.0.1", "::1"])
async def test_this_machine_has_many_names(address: str) -> None:
    async with await tai.open(address) as host:
        assert (host.address, host.info.kind, host.is_local) == ("local", "docker", True)


async def test_a_bad_option_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(InvalidOptionError):
        await tai.open("local", {"no-such-option": "1"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.embedded
async def test_an_environment_its_files_its_urls_and_its_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("bubblewrap")
    tmp_path.chmod(0o755)
    async with await tai.open("embedded") as host, httpx.AsyncClient(trust_env=False) as browser:
        directory = tmp_path / "one"
        spec = EnvironmentSpec(
            uid="01ARZ3NDEKTSV4RRFFQ69G5FAV",
            name="one",
            image="",
            labels={},
            directory=directory,
            workspace=directory / "workspace",
        )
        await asyncio.to_thread(spec.workspace.mkdir, parents=True)
        runtime_id = await host.runtime.create(spec)
        try:
            with pytest.raises(NotRunningError):
                await host.proxy.url(runtime_id, 80)
            await host.runtime.start(runtime_id)
            program = await asyncio.to_thread(PROGRAM.read_bytes)
            await host.volume(spec, runtime_id).write("webserver.py", _once(program))
            assert (await host.workspace(spec.workspace).stat("webserver.py")).size == len(program)
            argv = ("python3", "webserver.py", "0", "0")
            server = await host.runtime.exec_stream(runtime_id, ExecOptions(argv=argv))
            said = await server.receive()
            assert said is not None
            port, tcp = json.loads(said[1])
            url = await host.proxy.url(runtime_id, port)
            assert (await browser.get(url)).text == "hello from inside"
            assert (await host.proxy.healthz()).links == 1
            async with await host.attach(runtime_id, tcp, "tcp") as connection:
                await connection.write("word")
                assert await connection.read() == b"word"
            async with await host.attach(runtime_id, port, path="/ws") as socket:
                await socket.write("word")
                assert await socket.read() == "word"
            host.proxy.revoke(runtime_id)
            assert (await browser.get(url)).status_code == 404
            await server.cancel(0)
        finally:
            await host.runtime.remove(runtime_id)
            await host.runtime.remove_workspace(spec)
        with pytest.raises(NotFoundError):
            await host.proxy.url(runtime_id, port)


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


@pytest.mark.embedded
def test_the_program_of_the_documentation_runs() -> None:
    require("bubblewrap")
    text = (Path(__file__).parents[2] / "docs/hosts.md").read_text(encoding="utf-8")
    program = text.split("```python\n")[1].split("```")[0]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("stdout here\nExitStatus(exit_code=0")
    assert done.stdout.endswith("['here']\n")
