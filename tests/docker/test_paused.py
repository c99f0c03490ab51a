"""A container that somebody pauses: its commands stand still, and nothing is held against them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from tests.contract.box import Box, eventually, mark, receive_until
from tests.docker.conftest import MakeBox, OpenRuntime
from tests.docker.test_guest import docker
from yaosb_jupyter.choices import Status
from yaosb_jupyter.errors import NotRunningError
from yaosb_jupyter.link import exec as guest_exec
from yaosb_jupyter.tai.runtimes.docker import DockerRuntime
from yaosb_jupyter.tai.runtimes.docker import exec as engine_exec
from yaosb_jupyter.tai.volumes import link as link_volume

pytestmark = pytest.mark.docker

OVERDUE = 2.5
"""Seconds after which all patience would be over."""


@pytest.fixture(params=[{}, {"shared_files": "no"}, {"link": "engine"}], ids=["socket", "relay", "engine"])
async def runtime(
    request: pytest.FixtureRequest, open_runtime: OpenRuntime, monkeypatch: pytest.MonkeyPatch
) -> DockerRuntime:
    """Whose patience is short."""
    for module, name, value in (
        (guest_exec, "GUEST_GRACE", 0.2),
        (guest_exec, "BACKSTOP", 0.5),
        (engine_exec, "_END_ATTEMPTS", 1),
        (link_volume, "PATIENCE", 1.0),
    ):
        monkeypatch.setattr(module, name, value)
    return await open_runtime(**request.param)


async def pause(box: Box) -> None:
    await docker("pause", box.runtime_id)

    async def noticed() -> bool:
        guest = await box.runtime._parts.guests.of(box.runtime_id)  # type: ignore[attr-defined]
        return guest is None or guest.paused

    await eventually(noticed)


async def status(box: Box) -> Status:
    return (await box.runtime.inspect(box.runtime_id)).status


async def test_a_timeout_waits_until_it_goes_on(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime)
    began = time.monotonic()
    stream = await box.stream("sh", "-c", "echo up; sleep 1000", timeout=0.7)
    await receive_until(stream, b"up")
    await pause(box)
    await asyncio.sleep(began + 0.7 + OVERDUE - time.monotonic())
    assert await status(box) is Status.PAUSED
    await docker("unpause", box.runtime_id)
    async with asyncio.timeout(10):
        assert (await stream.wait()).timed_out
    assert (await box.sh("echo up")).stdout == b"up\n"


async def test_a_command_that_is_cancelled_costs_it_nothing(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime)
    number = mark()
    stream = await box.stream("sh", "-c", f"echo up; sleep {number}")
    await receive_until(stream, b"up")
    reading = asyncio.ensure_future(stream.receive())
    await pause(box)
    async with asyncio.timeout(20):
        await stream.cancel(0.1)
        with pytest.raises(NotRunningError, match="paused"):
            await stream.wait()
        assert await reading is None
    assert await status(box) is Status.PAUSED
    await docker("unpause", box.runtime_id)

    async def ended() -> bool:
        return not await box.pids_of(number)

    await eventually(ended, what="it is ended now that it goes on")


async def test_a_file_under_way_arrives(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime)
    paused = asyncio.Event()

    async def content() -> AsyncIterator[bytes]:
        yield b"one"
        await pause(box)
        paused.set()
        yield b"two"

    writing = asyncio.ensure_future(box.volume.write("file", content()))
    await paused.wait()
    await asyncio.sleep(OVERDUE)
    await docker("unpause", box.runtime_id)
    async with asyncio.timeout(10):
        await writing
    assert await box.read("file") == b"onetwo"
