"""The blob: small, the same each time, and at home on any Python from 3.8 on."""

from __future__ import annotations

import ast
import gc
import io
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path

import pytest

from tests.contract.box import eventually
from tests.guest.rig import Guest, guest, other_pythons
from tests.rig.require import require
from yaosb_jupyter.link.blob import PACKAGE, guest_blob, install_blob
from yaosb_jupyter.link.program import install_program


def test_the_blob_is_small() -> None:
    assert len(guest_blob()) < 64 * 1024


def test_the_blob_is_the_same_each_time() -> None:
    first = guest_blob()
    guest_blob.cache_clear()
    assert guest_blob() == first


def test_the_blob_holds_what_the_guest_imports_and_no_more() -> None:
    names = zipfile.ZipFile(io.BytesIO(guest_blob())).namelist()
    assert {"__main__.py", f"{PACKAGE}/main.py", f"{PACKAGE}/frames.py"} <= set(names)
    assert all(name.endswith(".py") for name in names)
    assert len(names) == len(set(names))


def test_every_module_is_python_3_8() -> None:
    modules = [item for item in resources.files("yaosb_jupyter.guest").iterdir() if item.name.endswith(".py")]
    assert len(modules) > 10
    for module in modules:
        ast.parse(module.read_text(encoding="utf-8"), feature_version=(3, 8))


def test_the_blob_is_installed_once(tmp_path: Path) -> None:
    first = install_blob(tmp_path)
    written = first.stat()
    assert install_blob(tmp_path) == first
    assert first.stat().st_ino == written.st_ino
    assert written.st_mode & 0o777 == 0o644


@pytest.mark.parametrize("which", [0, -1], ids=["oldest", "newest"])
async def test_it_runs_on_the_oldest_and_the_newest_python(which: int, tmp_path: Path) -> None:
    require("other-pythons")
    python = other_pythons()[which]
    async with guest(tmp_path, python) as running:
        status, stdout, stderr = await running.run("sh", "-c", "echo out; echo err >&2; exit 3")
        assert (status.exit_code, stdout, stderr) == (3, b"out\n", b"err\n")
        stream = await running.exec("cat", stdin=True)
        await stream.send(b"x" * 500_000)
        await stream.close_stdin()
        total = 0
        while (piece := await stream.receive()) is not None:
            total += len(piece[1])
        assert total == 500_000
        status, _, _ = await running.run("sleep", "1000", timeout=0.3)
        assert status.timed_out
        sleeping = await running.exec("sh", "-c", "echo here; exec sleep 1000")
        await sleeping.receive()
        await eventually(lambda: _sleeps(running), what="it sleeps")
        told = await running.link.call("kill", {"pattern": "^sleep 1000$", "grace": 1})
        assert len(told["pids"]) == 1
        assert (await sleeping.wait()).signal == 15
        running.process.terminate()
        assert await running.process.wait() == 0


async def _sleeps(running: Guest) -> bool:
    told = await running.link.call("processes", {})
    return any(process["command"] == "sleep 1000" for process in told["processes"])


@pytest.mark.parametrize("install", [install_blob, install_program])
def test_a_start_loads_nothing_that_only_types_and_archives_need(
    install: Callable[[Path], Path], tmp_path: Path
) -> None:
    python = [sys.executable, "-I", "-S", "-X", "importtime"]
    done = subprocess.run([*python, str(install(tmp_path))], input=b"", capture_output=True, timeout=20)
    assert b"whoever started this guest has gone" in done.stderr
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert {f"{PACKAGE}.main", f"{PACKAGE}.executions", "subprocess"} <= loaded
    assert not loaded & {"typing", "tempfile", "dataclasses", "inspect", f"{PACKAGE}.files"}
    if install is install_program:
        assert not loaded & {"runpy", "zlib", "importlib.util"}


async def test_the_program_serves_files_too(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("there")
    async with guest(tmp_path, install=install_program) as running:
        assert await running.link.call("files.stat", {"names": ["here"], "follow": True})


def test_the_sources_lose_their_documentation_and_nothing_else() -> None:
    sources = zipfile.ZipFile(io.BytesIO(guest_blob()))
    for name in sources.namelist():
        if name.startswith(PACKAGE):
            original = resources.files("yaosb_jupyter.guest").joinpath(Path(name).name).read_text(encoding="utf-8")
            assert _undocumented(sources.read(name).decode()) == _undocumented(original), name


def _undocumented(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value.value = ""
    return ast.dump(tree)


@pytest.fixture
def collections_that_yield() -> Iterator[None]:
    """Garbage is collected often, and lets other threads go on meanwhile, as finalizers do."""

    def let_others_go_on(phase: str, details: Mapping[str, int]) -> None:
        time.sleep(0.00001)

    before = gc.get_threshold()
    gc.callbacks.append(let_others_go_on)
    gc.set_threshold(100)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(let_others_go_on)


def test_several_threads_make_it_at_once(collections_that_yield: None) -> None:
    """As pools of one process that are opened at the same moment."""
    with ThreadPoolExecutor(4) as threads:
        making = [threads.submit(guest_blob.__wrapped__) for _ in range(8)]
    assert {each.result() for each in making} == {guest_blob()}
