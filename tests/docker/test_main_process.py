"""What the main process is, in images of all kinds."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.contract.box import eventually
from tests.docker.conftest import MakeBox, MakeImage
from tests.rig.require import NOPYTHON_IMAGE
from yaosb_jupyter.choices import Status
from yaosb_jupyter.errors import CommandNotFoundError, InvalidOptionError, UnavailableError
from yaosb_jupyter.options import ExecOptions
from yaosb_jupyter.tai.runtimes.docker import DockerRuntime, processes
from yaosb_jupyter.tai.runtimes.docker.lifecycle import has_begun

pytestmark = pytest.mark.docker


async def test_the_images_own_is_kept(runtime: DockerRuntime, make_box: MakeBox, make_image: MakeImage) -> None:
    image = await make_image('ENTRYPOINT ["sh", "-c"]', 'CMD ["echo from the image $GREETING; exec sleep 1000"]')
    box = await make_box(runtime, image=image, cmd=("image",), env={"GREETING": "for you"})
    async for chunk in runtime.logs(box.runtime_id, follow=True):
        assert chunk.data == b"from the image for you\n"
        break


async def test_the_images_own_is_overridden(runtime: DockerRuntime, make_box: MakeBox, make_image: MakeImage) -> None:
    image = await make_image('ENTRYPOINT ["false"]')
    box = await make_box(runtime, image=image)
    assert (await box.sh("echo up")).stdout == b"up\n"


async def test_an_image_without_python_runs_commands(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime, image=NOPYTHON_IMAGE)
    ran = await box.run("cat", stdin=b"hello" * 50_000)
    assert ran.stdout == b"hello" * 50_000
    assert (await box.sh("sleep 1000 & setsid sleep 1001 & sleep 1002", timeout=0.5)).status.timed_out
    assert b"sleep 100" not in (await box.sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -v yaosb-exec")).stdout
    with pytest.raises(CommandNotFoundError):
        await box.run("no-such-command")
    started = time.monotonic()
    await box.stop(10)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("lines", "begun"),
    [
        ([], False),
        (["/sbin/docker-init -- sh -c :"], False),
        (["/sbin/docker-init -- sh -c :", "/sbin/docker-init -- sh -c :"], False),
        (["/sbin/docker-init -- sh -c :", "[docker-init] <defunct>"], False),
        (["/sbin/docker-init -- sh -c :", "[docker-init]"], False),
        (["/sbin/docker-init -- sh -c :", "sh -c :"], True),
        (["/sbin/docker-init -- [ -e x ]", "[ -e x ]"], True),
    ],
)
def test_what_init_has_not_become_has_not_begun(lines: list[str], begun: bool) -> None:
    assert has_begun(lines) is begun


async def test_an_image_without_sh_is_told(runtime: DockerRuntime, make_box: MakeBox, make_image: MakeImage) -> None:
    image = await make_image(files={"hello.txt": b"hello"})
    box = await make_box(runtime, image=image, start=False)
    with pytest.raises(CommandNotFoundError, match="no sh"):
        await box.start()
    with pytest.raises(InvalidOptionError, match="no command"):
        await make_box(runtime, image=image, cmd=("image",))


async def test_the_death_of_the_main_process_has_a_reason(runtime: DockerRuntime, make_box: MakeBox) -> None:
    events = runtime.events()
    first = asyncio.ensure_future(anext(events))
    box = await make_box(runtime, cmd=("sh", "-c", "sleep 0.3; exit 5"))
    seen = [await first]
    async with asyncio.timeout(20):
        while seen[-1].status is not Status.STOPPED:
            event = await anext(events)
            seen += [event] if event.runtime_id == box.runtime_id else []
    assert "5" in seen[-1].reason
    assert "5" in (await runtime.inspect(box.runtime_id)).reason


async def test_x18_running_out_of_memory_is_told(runtime: DockerRuntime, make_box: MakeBox) -> None:
    events = runtime.events()
    first = asyncio.ensure_future(anext(events))
    hog = "data = bytearray()\nwhile True: data += b'x' * 2**20"
    box = await make_box(runtime, memory=32 * 2**20, cmd=("python3", "-c", hog))
    await first
    reasons = []
    async with asyncio.timeout(30):
        async for event in events:
            reasons += [event.reason] if event.runtime_id == box.runtime_id else []
            if event.status is Status.STOPPED and event.runtime_id == box.runtime_id:
                break
    assert any("out of memory" in reason for reason in reasons)


async def test_x18_a_fork_bomb_is_ended_at_its_timeout(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime, pids=30)
    bomb = "import os, time\nwhile True:\n    try: os.fork()\n    except OSError: time.sleep(0.05)"
    stream = await runtime.exec_stream(box.runtime_id, ExecOptions(argv=("python3", "-c", bomb), timeout=1))
    async with asyncio.timeout(30):
        assert (await stream.wait()).timed_out

    async def usable() -> bool:
        try:
            return (await box.sh("echo up")).stdout == b"up\n"
        except UnavailableError:
            return False  # still full

    await eventually(usable, within=20, what="commands run again")


async def test_a_paused_one_is_started_again(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime)
    await runtime._engine.call(lambda client: client.pause(box.runtime_id))
    assert (await runtime.inspect(box.runtime_id)).status is Status.PAUSED
    await box.start()
    assert (await box.sh("echo up")).stdout == b"up\n"


async def test_x3_a_command_is_ended_from_beside_a_sandbox_that_is_full(
    runtime: DockerRuntime, make_box: MakeBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing more can be started inside: from a container that shares the process ids only."""

    async def cannot_start(*args: object, **kwargs: object) -> tuple[int, bytes, bytes]:
        return 126, b"OCI runtime exec failed", b""

    box = await make_box(runtime)
    stream = await box.stream("sh", "-c", "echo up; setsid sleep 1000 & exec sleep 1001")
    assert await stream.receive() is not None
    monkeypatch.setattr(processes, "run_script", cannot_start)
    await stream.cancel(0.1)
    assert (await stream.wait()).signal is not None
    monkeypatch.undo()
    assert b"sleep 100" not in (await box.sh("ps -e -o args | grep -v yaosb-exec")).stdout
