"""Create, start, stop, remove: from every state, and what is told of an environment."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from tests.contract.box import Box, eventually
from tests.contract.conftest import MakeBox, MakeSpec
from yaosb_jupyter.choices import Status
from yaosb_jupyter.errors import (
    AlreadyExistsError,
    CommandNotFoundError,
    NotFoundError,
    NotRunningError,
    SandboxLostError,
)
from yaosb_jupyter.options import ExecOptions
from yaosb_jupyter.tai.runtimes.base import Runtime

TICKING = "while :; do echo tick >> ticks; sleep 0.05; done"


async def status_of(box: Box) -> Status:
    return (await box.runtime.inspect(box.runtime_id)).status


async def ticks(box: Box) -> int:
    return (await box.volume.stat("ticks")).size


async def is_still(box: Box) -> bool:
    """Whether nothing ticks any more."""
    before = await ticks(box)
    await asyncio.sleep(0.4)
    return await ticks(box) == before


async def test_what_was_asked_for_is_told(make_box: MakeBox) -> None:
    before = datetime.now(UTC)
    box = await make_box(start=False, labels={"team": "données", "who": "a.b@example.org"})
    state = await box.runtime.inspect(box.runtime_id)
    assert state.runtime_id == box.runtime_id
    assert state.name == box.spec.name
    assert state.status is Status.CREATED
    assert state.labels.items() >= box.spec.labels.items()
    assert state.image == box.spec.image
    assert state.created_at is not None
    assert abs(state.created_at - before) < timedelta(seconds=30)


async def test_list_is_by_label(runtime: Runtime, make_box: MakeBox, labels: dict[str, str]) -> None:
    red = await make_box(start=False, labels={"colour": "red"})
    blue = await make_box(labels={"colour": "blue", "size": "big"})
    stopped = await make_box(labels={"colour": "blue"})
    await stopped.stop()

    async def found(**wanted: str) -> set[str]:
        return {state.runtime_id for state in await runtime.list({**labels, **wanted})}

    assert await found() == {red.runtime_id, blue.runtime_id, stopped.runtime_id}
    assert await found(colour="blue") == {blue.runtime_id, stopped.runtime_id}
    assert await found(colour="blue", size="big") == {blue.runtime_id}
    assert await found(colour="green") == set()
    listed = {state.runtime_id: state for state in await runtime.list(labels)}
    assert listed[blue.runtime_id].status is Status.RUNNING
    assert listed[red.runtime_id].status is Status.CREATED
    assert listed[stopped.runtime_id].status is Status.STOPPED
    assert listed[blue.runtime_id].labels.items() >= blue.spec.labels.items()


async def test_a_name_is_given_once(make_box: MakeBox, make_spec: MakeSpec, runtime: Runtime) -> None:
    box = await make_box(start=False)
    with pytest.raises(AlreadyExistsError):
        await runtime.create(make_spec(name=box.spec.name))


async def test_start_twice_is_start_once(box: Box) -> None:
    assert (await box.sh("echo mine > file")).code == 0
    await box.start()
    assert await status_of(box) is Status.RUNNING
    assert await box.read("file") == b"mine\n"


async def test_stop_keeps_files_and_start_brings_it_back(box: Box) -> None:
    await box.sh("echo kept > file")
    await box.stop()
    assert await status_of(box) is Status.STOPPED
    await box.stop()
    await box.start()
    assert (await box.sh("cat file")).stdout == b"kept\n"


async def test_stop_of_one_never_started_changes_nothing(make_box: MakeBox) -> None:
    box = await make_box(start=False)
    await box.stop()
    assert await status_of(box) is Status.CREATED


@pytest.mark.parametrize("state", ["created", "running", "stopped"])
async def test_remove_from_every_state_and_twice(state: str, make_box: MakeBox, labels: dict[str, str]) -> None:
    box = await make_box(start=state != "created")
    if state == "stopped":
        await box.stop()
    await box.runtime.remove(box.runtime_id)
    with pytest.raises(NotFoundError):
        await box.runtime.inspect(box.runtime_id)
    assert await box.runtime.list(labels) == []
    await box.runtime.remove(box.runtime_id)


async def test_remove_keeps_the_workspace_until_it_is_removed_too(box: Box) -> None:
    await box.sh("mkdir -p deep/er; echo x > deep/er/file; ln -s /etc/passwd link")
    await box.runtime.remove(box.runtime_id)
    assert (box.spec.workspace / "deep/er/file").exists()
    await box.runtime.remove_workspace(box.spec)
    assert not box.spec.workspace.exists()
    await box.runtime.remove_workspace(box.spec)


CALLS: dict[str, Callable[[Runtime, str], Awaitable[object]]] = {
    "exec": lambda runtime, found: runtime.exec_stream(found, ExecOptions(argv=("true",))),
    "kill_processes": lambda runtime, found: runtime.kill_processes(found, "nothing"),
    "stats": lambda runtime, found: runtime.stats(found),
    "start": lambda runtime, found: runtime.start(found),
    "stop": lambda runtime, found: runtime.stop(found, 1),
    "inspect": lambda runtime, found: runtime.inspect(found),
    "logs": lambda runtime, found: anext(aiter(runtime.logs(found))),
}


@pytest.mark.parametrize("call", CALLS)
async def test_x15_a_call_on_one_removed_is_not_found_at_once(call: str, make_box: MakeBox) -> None:
    box = await make_box()
    await box.runtime.remove(box.runtime_id)
    async with asyncio.timeout(5):
        with pytest.raises(NotFoundError):
            await CALLS[call](box.runtime, box.runtime_id)


@pytest.mark.parametrize("call", ["exec", "kill_processes", "stats"])
@pytest.mark.parametrize("state", ["created", "stopped"])
async def test_x15_a_call_on_one_not_running_says_so_at_once(state: str, call: str, make_box: MakeBox) -> None:
    box = await make_box(start=state == "stopped")
    if state == "stopped":
        await box.stop()
    async with asyncio.timeout(5):
        with pytest.raises(NotRunningError):
            await CALLS[call](box.runtime, box.runtime_id)


async def test_stop_ends_all_its_processes(box: Box) -> None:
    await box.sh(f"setsid sh -c '{TICKING}' >/dev/null 2>&1 &")
    await eventually(lambda: box.has("ticks"), what="the daemon ticks")
    await box.stop()
    assert await is_still(box)


async def test_remove_ends_all_its_processes(box: Box) -> None:
    await box.sh(f"setsid sh -c '{TICKING}' >/dev/null 2>&1 &")
    await eventually(lambda: box.has("ticks"), what="the daemon ticks")
    await box.runtime.remove(box.runtime_id)
    assert await is_still(box)


async def test_our_own_main_process_ends_at_once(box: Box) -> None:
    began = time.monotonic()
    await box.stop(timeout=10)
    assert time.monotonic() - began < 5


async def test_a_main_process_is_asked_first(make_box: MakeBox) -> None:
    script = "trap 'echo bye > bye; exit 0' TERM; echo up > up; while :; do sleep 0.05; done"
    box = await make_box(cmd=("sh", "-c", script))
    await eventually(lambda: box.has("up"), what="the main process runs")
    await box.stop(timeout=10)
    assert await box.read("bye") == b"bye\n"


async def test_a_main_process_that_ignores_term_is_killed_after_the_timeout(make_box: MakeBox) -> None:
    box = await make_box(cmd=("sh", "-c", f"trap '' TERM; {TICKING}"))
    await eventually(lambda: box.has("ticks"), what="the main process runs")
    began = time.monotonic()
    await box.stop(timeout=1)
    assert 0.9 < time.monotonic() - began < 6
    assert await status_of(box) is Status.STOPPED
    assert await is_still(box)


async def test_the_end_of_the_main_process_is_the_end_of_the_environment(make_box: MakeBox) -> None:
    box = await make_box(cmd=("sh", "-c", "sleep 0.3; exit 7"))

    async def ended() -> bool:
        return await status_of(box) is Status.STOPPED

    await eventually(ended, what="stopped")
    state = await box.runtime.inspect(box.runtime_id)
    assert state.exit_code == 7
    assert state.reason
    with pytest.raises(NotRunningError):
        await box.stream("true")


async def test_x15_a_call_on_one_that_ends_as_it_starts_does_not_wait(make_box: MakeBox) -> None:
    box = await make_box(cmd=("sh", "-c", "exit 3"))
    async with asyncio.timeout(10):
        with suppress(NotRunningError, SandboxLostError):
            await box.run("sleep", "30")
        with pytest.raises(NotRunningError):
            while True:
                with suppress(SandboxLostError):  # it ended just then
                    await box.run("true")


async def test_a_main_process_that_cannot_be_started_is_an_error(make_box: MakeBox) -> None:
    box = await make_box(start=False, cmd=("no-such-program",))
    with pytest.raises(CommandNotFoundError):
        await box.start()
    assert await status_of(box) is not Status.RUNNING


async def test_its_environment_reaches_every_command(make_box: MakeBox) -> None:
    box = await make_box(env={"GREETING": "good morning", "EMPTY": ""})
    ran = await box.sh('echo "$GREETING|${EMPTY-unset}|$MORE"', env={"MORE": "$x 'y'\nz"})
    assert ran.stdout == b"good morning||$x 'y'\nz\n"


async def test_nothing_of_ours_reaches_it(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YAOSB_TEST_SECRET", "s3cret")
    assert b"s3cret" not in (await box.run("env")).stdout


@pytest.mark.parametrize("after", [0.0, 0.002, 0.02, 0.1])
async def test_a_cancelled_create_is_done_or_not(
    after: float, runtime: Runtime, make_spec: MakeSpec, labels: dict[str, str]
) -> None:
    creating = asyncio.ensure_future(runtime.create(make_spec()))
    await asyncio.sleep(after)
    creating.cancel()
    await asyncio.wait([creating])
    found = await runtime.list(labels)
    await asyncio.sleep(0.5)
    assert await runtime.list(labels) == found, "it came after the call was over"


@pytest.mark.parametrize("after", [0.0, 0.002, 0.02, 0.1])
async def test_a_cancelled_start_can_be_repeated(after: float, make_box: MakeBox) -> None:
    box = await make_box(start=False)
    starting = asyncio.ensure_future(box.start())
    await asyncio.sleep(after)
    starting.cancel()
    await asyncio.wait([starting])
    await box.start()
    assert (await box.sh("echo up")).stdout == b"up\n"
