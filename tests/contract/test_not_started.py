"""Commands that cannot be started: what was missing is named, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.box import Box, eventually
from tests.contract.conftest import MakeBox
from tests.contract.hosts import Host, host_of, hosts
from yaosb_jupyter.errors import CommandNotFoundError, LimitExceededError
from yaosb_jupyter.tai.runtimes.base import Capability, RuntimeInfo

BOMB = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    while True:
        try:
            if os.fork() == 0:
                signal.pause()
        except OSError:
            time.sleep(0.01)
"""
"""Fills the sandbox, and what becomes free again."""


EVERY = hosts("docker", "docker-engine", "embedded")


@pytest.fixture(params=hosts("docker", "embedded"))
def host(request: pytest.FixtureRequest, directory: Path) -> Iterator[Host]:
    yield from host_of(request.param, directory)


@pytest.mark.parametrize("host", EVERY, indirect=True)
async def test_x7_a_missing_directory_is_named(box: Box) -> None:
    with pytest.raises(
        CommandNotFoundError, match=r"working directory /workspace/no/such: .*choose another cwd"
    ) as told:
        await box.run("true", cwd="no/such")
    assert told.value.exit_code == 126


@pytest.mark.parametrize("host", EVERY, indirect=True)
async def test_x7_a_user_that_is_not_there_is_told_with_the_way_out(box: Box) -> None:
    with pytest.raises(CommandNotFoundError, match=r"nobody-at-all|no matching entries") as told:
        await box.run("true", user="nobody-at-all")
    assert told.value.hint


async def test_x7_a_working_directory_that_is_missing_is_made(make_box: MakeBox) -> None:
    box = await make_box(workdir="/workspace/deep/er")
    assert (await box.sh("pwd")).stdout.endswith(b"/deep/er\n")


async def test_x7_a_command_that_is_not_there_is_named(box: Box) -> None:
    with pytest.raises(CommandNotFoundError, match=r"no-such-program.*PATH"):
        await box.run("no-such-program")


@pytest.mark.parametrize("host", EVERY, indirect=True)
async def test_x7_a_file_that_cannot_be_run_is_named(box: Box) -> None:
    await box.write("plain", b"text", mode=0o644)
    with pytest.raises(CommandNotFoundError, match=r"plain.*(Permission denied|cannot be run).*chmod"):
        await box.run("./plain")


async def test_x7_a_closed_workspace_is_named(box: Box) -> None:
    assert (await box.sh("chmod 000 /workspace || chmod 000 .")).code == 0
    with pytest.raises(CommandNotFoundError, match=r"working directory .*Permission denied.*mend its rights"):
        await box.run("true")
    await box.run("chmod", "755", str(box.spec.workspace), cwd="/")


@pytest.mark.parametrize("host", EVERY, indirect=True)
async def test_x7_an_argument_that_is_too_long_is_told(box: Box) -> None:
    with pytest.raises(CommandNotFoundError, match=r"[Aa]rgument list too long.*128 KiB"):
        await box.run("echo", "x" * 200_000)


@pytest.mark.parametrize("host", EVERY, indirect=True)
async def test_x18_a_full_sandbox_is_told_with_the_way_out(make_box: MakeBox, info: RuntimeInfo) -> None:
    if Capability.PIDS_LIMIT not in info.capabilities:
        return
    box = await make_box(pids=20)
    assert (await box.python(BOMB)).code == 0

    async def full() -> bool:
        try:
            await box.run("true")
        except LimitExceededError as error:
            return "limit on processes" in error.message and "kill_process" in str(error.hint)
        return False

    await eventually(full, what="refused for its limit on processes")
    await box.stop(0)
    await box.start()
    assert (await box.sh("echo answers")).stdout == b"answers\n"
