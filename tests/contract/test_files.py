"""The workspace: one, seen by the sandbox and through the volume at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.box import Box, receive_until, sha
from tests.contract.conftest import MakeBox
from tests.contract.hosts import Host, host_of, hosts
from yaosb_jupyter.errors import NotFoundError, PathError
from yaosb_jupyter.tai.runtimes.base import Capability, RuntimeInfo

MIB = 2**20


@pytest.fixture(params=hosts("memory", "docker", "docker-relay", "docker-tls", "docker-engine", "embedded"))
def host(request: pytest.FixtureRequest, directory: Path) -> Iterator[Host]:
    yield from host_of(request.param, directory)


async def test_x14_what_is_written_through_the_api_is_seen_inside(box: Box) -> None:
    await box.write("in/put.txt", b"from outside")
    assert (await box.run("cat", "in/put.txt")).stdout == b"from outside"


async def test_x14_what_is_written_inside_is_seen_through_the_api(box: Box) -> None:
    await box.sh("mkdir -p out; echo inside > out/file; printf '\\377\\000' > out/bytes")
    assert await box.read("out/file") == b"inside\n"
    assert await box.read("out/bytes") == b"\xff\x00"
    assert [info.name for info in await box.volume.list("out")] == ["bytes", "file"]


async def test_x14_a_running_command_sees_it_at_once(box: Box) -> None:
    stream = await box.stream("sh", "-c", "while [ ! -f go ]; do sleep 0.02; done; cat go; echo answer > answer")
    await box.write("go", b"now\n")
    async with asyncio.timeout(10):
        await receive_until(stream, b"now")
        assert (await stream.wait()).exit_code == 0
    assert await box.read("answer") == b"answer\n"


async def test_a_file_written_through_the_api_belongs_to_the_sandbox(box: Box) -> None:
    await box.write("made/by/api.txt", b"one\n")
    ran = await box.sh("echo two >> made/by/api.txt && touch made/by/other && rm made/by/other && cat made/by/api.txt")
    assert ran.stdout == b"one\ntwo\n", ran.stderr


async def test_a_script_written_through_the_api_can_be_run(box: Box) -> None:
    await box.write("script", b"#!/bin/sh\necho ran\n", mode=0o755)
    assert (await box.run("./script")).stdout == b"ran\n"


async def test_a_private_file_of_the_sandbox_is_read_replaced_and_removed(box: Box) -> None:
    await box.sh("umask 077; mkdir private; echo secret > private/file")
    assert await box.read("private/file") == b"secret\n"
    await box.write("private/file", b"replaced")
    assert (await box.run("cat", "private/file")).stdout == b"replaced"
    await box.volume.remove("private", recursive=True)
    assert (await box.run("ls")).stdout == b""


async def test_x13_files_of_the_sandboxs_root_can_be_removed(make_box: MakeBox, info: RuntimeInfo, host: Host) -> None:
    user = "root" if Capability.USERS in info.capabilities else ""
    box = await make_box(user=user)
    ran = await box.sh("mkdir -p a/b; echo x > a/b/file; chmod 400 a/b/file; chmod 500 a/b a; echo done")
    assert ran.stdout == b"done\n", ran.stderr
    await box.volume.remove("a", recursive=True)
    await box.sh("mkdir -p c/d; echo x > c/d/file; chmod 000 c/d")
    await box.runtime.remove(box.runtime_id)
    await box.runtime.remove_workspace(box.spec)
    assert not await host.has_workspace(box.spec)


async def test_x13_files_that_another_user_left_can_be_removed(box: Box, info: RuntimeInfo) -> None:
    who = {"user": "root"} if Capability.USERS in info.capabilities else {}
    await box.sh("mkdir mine; chmod 777 mine . && echo x > mine/file")
    left = (
        "mkdir -p left/a; echo x > left/a/file; chmod 700 left/a left; echo x > alone; mkdir mine/a; echo x > mine/a/x"
    )
    ran = await box.sh(left, **who)
    assert ran.code == 0, ran.stderr
    for path in ("left", "alone", "mine"):
        await box.volume.remove(path, recursive=True)
    assert await box.volume.list() == []


async def test_files_are_there_while_it_is_stopped(box: Box) -> None:
    await box.sh("echo kept > file")
    await box.stop()
    assert await box.read("file") == b"kept\n"
    await box.write("more", b"written while stopped")
    await box.start()
    assert (await box.run("cat", "more")).stdout == b"written while stopped"


async def test_x11_links_out_of_the_workspace_are_refused(box: Box) -> None:
    await box.sh("ln -s /etc/passwd file; ln -s /etc dir; ln -s ../../../../etc/passwd up; mkfifo fifo")
    for path in ("file", "dir/passwd", "up", "fifo"):
        with pytest.raises(PathError):
            await box.read(path)
    with pytest.raises(PathError):
        await box.write("dir/new", b"x")
    assert sorted(info.name for info in await box.volume.list()) == ["dir", "fifo", "file", "up"]


async def test_links_within_the_workspace_are_followed(box: Box) -> None:
    await box.sh("mkdir real; echo inside > real/file; ln -s real link; ln -s /workspace/real/file absolute")
    assert await box.read("link/file") == b"inside\n"
    assert await box.read("absolute") == b"inside\n"
    await box.stop()
    for name, size in {"absolute": 7, "real/file": 7}.items():
        assert (await box.volume.stat(name, follow=True)).size == size
    assert (await box.volume.stat("link", follow=True)).is_dir
    with pytest.raises(FileNotFoundError):
        await box.volume.stat("link/nothing", follow=True)


async def test_a_big_file_goes_in_and_out_unchanged(box: Box) -> None:
    data = bytes(range(256)) * 4096 * 24
    await box.write("big", data)
    assert (await box.run("sha256sum", "big")).stdout.split()[0].decode() == sha(data)
    assert (await box.run("cp", "big", "copy")).code == 0
    assert sha(await box.read("copy")) == sha(data)


async def test_a_missing_file_is_not_found(box: Box) -> None:
    with pytest.raises(NotFoundError, match="nothing-here"):
        await box.read("nothing-here")
