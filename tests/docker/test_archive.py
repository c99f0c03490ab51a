"""A workspace through the engine's archive: writes that fail or are cancelled leave nothing, and errors are ours."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.contract.box import pieces
from tests.docker.conftest import MakeBox, OpenRuntime
from tests.manager.waiting import until
from yaosb_jupyter.errors import PathError, PathLinkError
from yaosb_jupyter.tai.runtimes.docker import DockerRuntime, archive
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.processes import run_script

pytestmark = pytest.mark.docker


async def test_x10_a_write_that_is_cancelled_as_its_spool_is_made_closes_it(
    monkeypatch: pytest.MonkeyPatch, runtime: DockerRuntime, make_box: MakeBox
) -> None:
    box = await make_box(runtime)
    loop = asyncio.get_running_loop()
    make, made = tempfile.SpooledTemporaryFile, []

    def make_and_cancel(*arguments: Any) -> tempfile.SpooledTemporaryFile[bytes]:
        made.append(make(*arguments))
        loop.call_soon_threadsafe(writing.cancel)
        return made[0]

    async def content() -> AsyncIterator[bytes]:
        yield b"new"
        await asyncio.Event().wait()

    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", make_and_cancel)
    writing = asyncio.ensure_future(runtime._archive(box.runtime_id).write("file", content()))
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert made[0].closed


async def test_x10_a_write_that_fails_or_is_cancelled_leaves_nothing_in_the_workspace(
    monkeypatch: pytest.MonkeyPatch, runtime: DockerRuntime, make_box: MakeBox
) -> None:
    box = await make_box(runtime, user="1234:1234")
    volume, workspace = runtime._archive(box.runtime_id), box.spec.workspace
    await box.sh("mkdir shut; chmod 500 shut; mkdir open")
    with pytest.raises(PathError, match=r"'shut/file' may not be accessed"):
        await volume.write("shut/file", pieces(b"x"))
    with pytest.raises(PathError, match="not UTF-8"):
        await volume.write("open/\udcff", pieces(b"x"))
    monkeypatch.setattr("yaosb_jupyter.tai.runtimes.docker.archive.MOVE", "sleep 30")
    writing = asyncio.ensure_future(volume.write("open/file", pieces(b"x")))

    async def is_sent() -> bool:
        return any((workspace / "open").iterdir())

    await until(is_sent)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert sorted(path.name for path in workspace.rglob("*")) == ["open", "shut"]


async def test_what_an_archive_cannot_do_is_told_with_the_path(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime, user="1234:1234")
    volume, workspace = runtime._archive(box.runtime_id), box.spec.workspace
    await box.sh("ln -s /etc out; mkdir shut full; chmod 0 shut; touch full/x file")
    (workspace / "full" / "n\udcff").write_text("there")
    for path in ("out", "out/passwd"):
        with pytest.raises(PathLinkError, match=f"'{path}' leads out of the workspace"):
            await volume.stat(path, follow=True)
    with pytest.raises(PathError, match=r"'shut' may not be accessed"):
        await volume.list("shut")
    with pytest.raises(PathError, match=r"'file' is not a directory"):
        await volume.list("file")
    with pytest.raises(PathError, match="not UTF-8"):
        _ = [piece async for piece in volume.read("full/n\udcff")]
    assert [info.name for info in await volume.list("full")] == ["n\udcff", "x"]


async def test_a_tree_that_is_too_deep_for_an_engine_is_told_as_such(
    open_runtime: OpenRuntime, make_box: MakeBox
) -> None:
    runtime = await open_runtime()
    box = await make_box(runtime)
    here = os.open(box.spec.workspace, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=here)
        above, here = here, os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(above)
    os.close(here)
    volume = runtime._archive(box.runtime_id)
    for depth in (255, 256, 257):
        with pytest.raises(PathError, match="too deep"):
            await volume.list("/".join(["d"] * depth))
    assert (await volume.list("/".join(["d"] * 254)))[0].is_dir


async def test_a_tree_of_many_files_takes_few_requests(
    monkeypatch: pytest.MonkeyPatch, runtime: DockerRuntime, make_box: MakeBox, tmp_path: Path
) -> None:
    """Each costs a container of its own where the sandbox is stopped."""
    box = await make_box(runtime)
    await box.sh("mkdir copied; ln -s /workspace/elsewhere copied/7; echo old > copied/8")
    source = tmp_path / "source"
    (source / "below").mkdir(parents=True)
    for number in range(250):
        (source / str(number)).write_text(str(number))
    (source / "below" / "large").write_bytes(bytes(1_000_000))
    (source / "below" / "small").write_text("small")
    scripts: list[str] = []

    async def counted(
        engine: Engine, runtime_id: str, script: str, arguments: Sequence[str]
    ) -> tuple[int, bytes, bytes]:
        scripts.append(script)
        return await run_script(engine, runtime_id, script, arguments)

    monkeypatch.setattr(archive, "run_script", counted)
    volume = runtime._archive(box.runtime_id)
    copied = await volume.push(source, "copied")
    assert (copied.files, copied.size) == (252, (source / "below/large").stat().st_size + 5 + 640)
    assert len(scripts) < 20
    found = box.spec.workspace / "copied"
    assert all((found / str(number)).read_text() == str(number) for number in range(250) if number != 7)
    assert (found / "below/small").read_text() == "small"
    assert (found / "below/large").stat().st_size == 1_000_000
    assert (box.spec.workspace / "elsewhere").read_text() == "7"
