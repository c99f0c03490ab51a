"""The guest in containers: as main process, beside the image's own, found again; and where there is none."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.contract.box import Box, eventually, mark, receive_until
from tests.docker.conftest import MakeBox, MakeImage, OpenRuntime
from tests.rig.require import NOPYTHON_IMAGE
from yaosb_jupyter.choices import Status
from yaosb_jupyter.errors import CommandNotFoundError, NotRunningError, SandboxLostError
from yaosb_jupyter.options import ExecOptions
from yaosb_jupyter.tai.runtimes.docker import DockerRuntime

pytestmark = pytest.mark.docker

WHO = "import os; print(open(f'/proc/{os.getppid()}/cmdline').read().split(chr(0))[3])"
"""The program that started this command: the guest's, or our wrapper's script."""


async def by_guest(box: Box) -> bool:
    return (await box.python(WHO)).stdout == b"/run/yaosb/guest.pyz\n"


async def docker(*arguments: str) -> None:
    done = await asyncio.create_subprocess_exec("docker", *arguments, stdout=asyncio.subprocess.DEVNULL)
    assert await done.wait() == 0


async def link_of(box: Box) -> str:
    return (await box.runtime.inspect(box.runtime_id)).link


@pytest.fixture(params=["auto", "no"])
async def runtime(request: pytest.FixtureRequest, open_runtime: OpenRuntime) -> DockerRuntime:
    """Over both links."""
    return await open_runtime(shared_files=request.param)


async def test_its_link_is_told(open_runtime: OpenRuntime, make_box: MakeBox) -> None:
    assert await link_of(await make_box(await open_runtime(), start=False)) == "socket"
    relayed = await make_box(await open_runtime(shared_files="no"), start=False, workspace=Path())
    assert await link_of(relayed) == "relay"
    assert await link_of(await make_box(await open_runtime(link="engine"), start=False)) == "engine"
    without = await make_box(await open_runtime(), image=NOPYTHON_IMAGE, start=False)
    assert await link_of(without) == "engine"
    listed = await without.runtime.list({"sandbox-uid": without.spec.uid})
    assert [state.link for state in listed] == ["engine"]


async def test_commands_are_its_children(runtime: DockerRuntime, make_box: MakeBox) -> None:
    assert await by_guest(await make_box(runtime))


@pytest.mark.parametrize("python", ["exit 1", "echo UEsDBA==; exit 1", "echo no blob", "exit 0"])
async def test_a_python_that_cannot_run_it_is_none(
    python: str, open_runtime: OpenRuntime, make_box: MakeBox, make_image: MakeImage
) -> None:
    image = await make_image(added={"usr/local/bin/python3": f"#!/bin/sh\n{python}\n".encode()})
    box = await make_box(await open_runtime(), image=image)
    assert await link_of(box) == "engine"
    assert (await box.sh("echo up")).stdout == b"up\n"


async def test_its_own_process_ends_at_once_with_what_it_runs(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime)
    stream = await box.stream("sleep", "1000")
    began = time.monotonic()
    await box.stop(10)
    assert time.monotonic() - began < 5
    state = await runtime.inspect(box.runtime_id)
    assert (state.status, state.reason, state.exit_code) == (Status.STOPPED, "", 0)
    await stream.aclose()


async def test_it_runs_the_users_main_process(runtime: DockerRuntime, make_box: MakeBox) -> None:
    script = 'echo "out $WORD"; echo err >&2; sleep 1000'
    box = await make_box(runtime, cmd=("sh", "-c", script), env={"WORD": "it's"})
    assert await by_guest(box)
    said: dict[str, bytes] = {}
    async for chunk in runtime.logs(box.runtime_id, follow=True):
        said[chunk.channel] = said.get(chunk.channel, b"") + chunk.data
        if len(said) == 2:
            break
    assert said == {"stdout": b"out it's\n", "stderr": b"err\n"}


async def test_the_end_of_the_users_main_process_is_the_containers(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime, cmd=("sh", "-c", "sleep 1000 & exit 7"))

    async def stopped() -> bool:
        return (await runtime.inspect(box.runtime_id)).status is Status.STOPPED

    await eventually(stopped)
    assert (await runtime.inspect(box.runtime_id)).exit_code == 7


async def test_a_main_process_that_is_not_there_is_told(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime, cmd=("no-such-command", "x"), start=False)
    with pytest.raises(CommandNotFoundError, match="no-such-command"):
        await box.start()


async def test_the_main_process_is_found_again(runtime: DockerRuntime, make_box: MakeBox) -> None:
    """By a manager that did not make it: what it runs, and in which environment."""
    box = await make_box(runtime, cmd=("sh", "-c", 'echo "$WORD"; sleep 1000'), env={"WORD": "again"})
    assert await _said(runtime, box, lines=1) == b"again\n"
    await box.stop()
    await runtime.close()
    await runtime.open()
    await box.start()
    assert await _said(runtime, box, lines=2) == b"again\nagain\n"


async def _said(runtime: DockerRuntime, box: Box, *, lines: int) -> bytes:
    """The main process's words, once they are so many lines."""
    words = b""
    async with asyncio.timeout(10):
        async for chunk in runtime.logs(box.runtime_id, follow=True):
            words += chunk.data
            if words.count(b"\n") == lines:
                break
    return words


async def test_beside_the_images_own_main_process(
    runtime: DockerRuntime, make_box: MakeBox, make_image: MakeImage
) -> None:
    image = await make_image('ENTRYPOINT ["sh", "-c"]', 'CMD ["echo mine; exec sleep 1000"]')
    box = await make_box(runtime, image=image, cmd=("image",), env={"WORD": "user's"})
    assert await by_guest(box)
    assert (await box.sh('echo "$WORD"; tr "\\0" " " < /proc/1/cmdline')).stdout.startswith(b"user's\n")
    guests = await guest_pids(box)
    assert len(guests) == 1
    await kill_guest(box)
    assert await by_guest(box)
    assert await guest_pids(box) != guests
    await box.stop()
    await box.start()
    assert await by_guest(box)
    assert len(await guest_pids(box)) == 1


async def kill_guest(box: Box) -> None:
    """From inside. Another takes its place, by itself."""
    stream = await box.stream("sh", "-c", "kill -9 $PPID")
    async with asyncio.timeout(20):
        with pytest.raises(SandboxLostError):
            await stream.wait()


async def guest_pids(box: Box) -> Sequence[int]:
    code = """
import json, os
found = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        line = open(f"/proc/{pid}/cmdline").read().split(chr(0))
    except OSError:
        continue
    if "/run/yaosb/guest.pyz" in line and "relay" not in line:
        found.append(int(pid))
print(json.dumps(found))
"""
    found: Sequence[int] = json.loads((await box.python(code)).stdout)
    return found


async def test_a_restart_by_someone_else_is_made_good(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime)
    assert await by_guest(box)
    await docker("restart", "--time", "2", box.runtime_id)
    async with asyncio.timeout(30):
        assert await by_guest(box)


async def test_a_start_by_someone_else_while_nobody_watched(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime)
    assert await by_guest(box)
    await runtime.close()
    await docker("restart", "--time", "2", box.runtime_id)
    await runtime.open()
    async with asyncio.timeout(30):
        assert await by_guest(box)


async def test_a_stop_by_someone_else_is_told_at_once(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime)
    stream = await box.stream("sleep", "1000")
    await docker("stop", "--time", "1", box.runtime_id)
    with pytest.raises(NotRunningError):
        await box.sh("true")
    async with asyncio.timeout(10):
        with pytest.raises(SandboxLostError, match="was stopped while"):
            await stream.wait()


async def test_a_command_that_ends_well_at_a_stop_has_its_result(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime)
    stream = await box.stream("sh", "-c", "trap 'echo saved; exit 3' TERM; echo up; while :; do sleep 0.05; done")
    await receive_until(stream, b"up")
    await docker("stop", "--time", "5", box.runtime_id)
    await receive_until(stream, b"saved")
    assert (await stream.wait()).exit_code == 3


async def test_what_a_lost_guest_ran_is_ended_by_the_next(
    runtime: DockerRuntime, make_box: MakeBox, make_image: MakeImage
) -> None:
    """Its caller was told that it is lost, and may run it again."""
    box = await make_box(runtime, image=await make_image('CMD ["sleep", "1000"]'), cmd=("image",))
    number = mark()
    stream = await box.stream("sh", "-c", f"trap '' TERM; setsid sleep {number} & echo up; sleep {number}")
    await receive_until(stream, b"up")
    await kill_guest(box)
    with pytest.raises(SandboxLostError):
        await stream.wait()

    async def ended() -> bool:
        return not await box.pids_of(number)

    await eventually(ended, what="the commands of the guest before have ended")


async def test_an_image_whose_own_process_ends_at_once_is_no_error_of_the_guests(
    runtime: DockerRuntime, make_box: MakeBox, make_image: MakeImage
) -> None:
    box = await make_box(runtime, image=await make_image('CMD ["true"]'), cmd=("image",))

    async def stopped() -> bool:
        return (await box.runtime.inspect(box.runtime_id)).status is Status.STOPPED

    await eventually(stopped)


async def test_x15_a_paused_one_is_told_and_goes_on(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime)
    stream = await box.stream("sh", "-c", "echo one; read line; echo $line", stdin=True)
    await receive_until(stream, b"one")
    await docker("pause", box.runtime_id)

    async def refused() -> bool:
        try:
            async with asyncio.timeout(0.5):
                await box.sh("true")
        except NotRunningError as error:
            return "paused" in str(error)
        except TimeoutError:
            pass
        return False

    await eventually(refused)
    await docker("unpause", box.runtime_id)
    await stream.send(b"two\n")
    await receive_until(stream, b"two")
    assert (await stream.wait()).exit_code == 0


async def test_each_start_has_a_key_of_its_own_that_is_told_to_it_alone(
    runtime: DockerRuntime, make_box: MakeBox
) -> None:
    box = await make_box(runtime)
    path = box.spec.directory / "link.key"
    first = path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    found = await runtime._engine.call(lambda client: client.inspect_container(box.runtime_id))
    assert first not in json.dumps(found)
    seen = await box.sh("grep -raf - /proc/[0-9]*/environ /proc/[0-9]*/cmdline /run/yaosb", stdin=first.encode())
    assert seen.stdout == b""
    assert b"/proc/1/environ: Permission denied" in seen.stderr
    await box.stop()
    await box.start()
    assert path.read_text() != first
    assert await by_guest(box)


async def test_without_its_key_the_engine_runs_commands(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime)
    await runtime.close()
    (box.spec.directory / "link.key").unlink()
    await runtime.open()
    assert not await by_guest(box)
    await box.stop()
    await box.start()
    assert await by_guest(box)


async def test_for_another_user_the_engine_runs_commands(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime)
    assert (await box.sh("id -u", user="root")).stdout == b"0\n"
    assert not (await box.python(WHO, user="nobody")).stdout.startswith(b"/run")
    own = int((await box.sh("id -u")).stdout)
    assert (await box.python(WHO, user=str(own))).stdout.startswith(b"/run")


async def test_what_another_user_runs_is_ended_too(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime)
    mine = await box.stream("sleep", "1234")
    roots = await runtime.exec_stream(box.runtime_id, ExecOptions(argv=("sh", "-c", "sleep 1234"), user="root"))
    await eventually(lambda: both_sleep(box), what="both sleep")
    pids = await runtime.kill_processes(box.runtime_id, "^sleep 1234", 0.2)
    assert len(pids) == 2
    async with asyncio.timeout(10):
        assert (await mine.wait()).signal == 15
        await roots.wait()


async def both_sleep(box: Box) -> bool:
    return (await box.sh("pgrep -cfx 'sleep 1234'")).stdout == b"2\n"


async def test_its_relay_and_itself_are_never_killed_by_a_pattern(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime)
    assert await runtime.kill_processes(box.runtime_id, "python", 0.1) == []
    assert await by_guest(box)


async def test_another_manager_beside_uses_the_engine(open_runtime: OpenRuntime, make_box: MakeBox) -> None:
    """Of two that know the same container, the guest serves the first."""
    runtime, other = await open_runtime(), await open_runtime()
    box = await make_box(runtime)
    assert await by_guest(box)
    beside = Box(runtime=other, runtime_id=box.runtime_id, spec=box.spec)
    assert not await by_guest(beside)
    assert await by_guest(box)
    await runtime.close()
    assert await by_guest(beside)
    await runtime.open()
