"""Building: what is told, what is left, how it ends."""

from __future__ import annotations

import asyncio
import io
import secrets
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.box import eventually
from tests.rig.require import TEST_IMAGE, require
from yaosb_jupyter.errors import ImageNotFoundError, UnavailableError
from yaosb_jupyter.images.catalogue import BASE
from yaosb_jupyter.tai.runtimes.docker.address import EngineAddress
from yaosb_jupyter.tai.runtimes.docker.builds import Builds, build_error
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.images import Images

pytestmark = pytest.mark.docker


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    engine = Engine(EngineAddress(path="/var/run/docker.sock"))
    await engine.open()
    yield engine
    await engine.close()


def context(*lines: str) -> io.BytesIO:
    """Of a Dockerfile on the test base."""
    text = "\n".join([f"FROM {TEST_IMAGE}", *lines]).encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
    buffer.seek(0)
    return buffer


def build_in_a_shell(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "yaosb_jupyter", "image", "build", *arguments]
    environment = {"PATH": "/usr/bin:/bin", **environment}
    return subprocess.run(argv, capture_output=True, text=True, timeout=100, env=environment)


def test_what_is_there_is_told_with_its_size_and_becomes_the_latest(tmp_path: Path) -> None:
    require("our-images")
    done = build_in_a_shell("base", HOME=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{BASE.full_name} is there already, ")
    assert done.stdout.endswith(" MiB\n")


def test_an_unknown_image_is_told_in_a_shell(tmp_path: Path) -> None:
    done = build_in_a_shell("nope", HOME=str(tmp_path))
    assert done.returncode == 1
    assert "there is no image 'nope' to build (known: base, test, desktop, data)" in done.stderr


def test_a_registry_that_is_empty_is_refused(tmp_path: Path) -> None:
    """A variable that was never set is no wish to push nowhere."""
    done = build_in_a_shell("base", "--push", "", HOME=str(tmp_path))
    assert done.returncode == 2
    assert "--push: it is empty" in done.stderr


def test_without_a_docker_pool_the_way_out_is_told(tmp_path: Path) -> None:
    done = build_in_a_shell(HOME=str(tmp_path), YAO_TAI_ADDR="embedded")
    assert done.returncode == 1
    assert "no pool has a Docker engine" in done.stderr
    assert "YAO_TAI_ADDR=local" in done.stderr


async def test_a_build_tells_its_lines_and_gives_an_image(engine: Engine) -> None:
    builds, tag, said = Builds(engine), f"yaosb/test-made:{secrets.token_hex(6)}", list[str]()
    await builds.build(
        tag, context("ARG WORD", "RUN echo the word is $WORD"), arguments={"WORD": "this"}, platform="", say=said.append
    )
    try:
        assert await builds.size(tag) > 0
        assert "the word is this" in said
    finally:
        await engine.call(lambda client: client.remove_image(tag, force=True))


async def test_a_failed_build_tells_the_last_that_was_said(engine: Engine) -> None:
    tag = f"yaosb/test-made:{secrets.token_hex(6)}"
    with pytest.raises(UnavailableError, match=r"(?s)could not be built.*it is broken.*code: 3"):
        await Builds(engine).build(
            tag, context("RUN echo it is broken; exit 3"), arguments={}, platform="", say=lambda _: None
        )
    assert not await Images(engine).exists(tag)


async def test_a_cancelled_build_ends_on_the_engine(engine: Engine) -> None:
    mark = secrets.token_hex(6)
    begun = asyncio.Event()

    def say(line: str) -> None:
        if line == f"begun {mark}":
            begun.set()

    building = asyncio.create_task(
        Builds(engine).build(
            f"yaosb/test-made:{mark}",
            context(f"RUN echo begun {mark}; exec sleep 1000"),
            arguments={},
            platform="",
            say=say,
        )
    )
    async with asyncio.timeout(60):
        await begun.wait()

    async def running() -> bool:
        found = await engine.call(lambda client: client.containers())
        return any(mark in each["Command"] for each in found)

    async def gone() -> bool:
        return not await running()

    await eventually(running)
    building.cancel()
    await asyncio.wait([building])
    await eventually(gone)


async def test_a_push_that_fails_says_why(engine: Engine) -> None:
    builds, name = Builds(engine), f"127.0.0.1:9/team/sandbox-base:{secrets.token_hex(6)}"
    await builds.tag(TEST_IMAGE, name)
    try:
        with pytest.raises(UnavailableError, match=r"could not be pushed: .*refused.*docker login"):
            await builds.push(name, lambda _: None)
    finally:
        await engine.call(lambda client: client.remove_image(name, force=True))


async def test_an_image_of_ours_is_never_pulled(engine: Engine) -> None:
    """A public registry may have anything by that name."""
    for image, command in (("yaosb/sandbox-data:gone", "build data"), ("yaosb/sandbox-else", "build NAME")):
        with pytest.raises(ImageNotFoundError, match=f"yaosb image {command}"):
            await Images(engine).pull(image, None)


@pytest.mark.parametrize(
    "message",
    [
        "exec /bin/sh: exec format error",
        "image with reference debian was found but does not match the specified platform",
    ],
)
def test_what_cannot_be_built_here_is_told_in_plain_words(message: str) -> None:
    told = str(build_error("yaosb/sandbox-base:1-arm64", message, [], "linux/arm64"))
    assert "yaosb/sandbox-base:1-arm64 was not built" in told
    assert "cannot run programs of linux/arm64" in told
    assert "qemu-user-static" in told
