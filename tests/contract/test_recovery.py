"""What outlives the runtime object, what happens behind its back, and whose an environment is."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from tests.contract.box import Box, collect, eventually, mark
from tests.contract.conftest import MakeBox, Opened
from tests.contract.hosts import Host
from yaosb_jupyter.choices import Status
from yaosb_jupyter.errors import NotFoundError, NotRunningError, SandboxLostError
from yaosb_jupyter.tai.runtimes.base import Runtime


async def after_a_restart(opened: Opened, box: Box) -> Box:
    """The same environment, as a manager finds it that was started anew."""
    return Box(runtime=await opened.again(), runtime_id=box.runtime_id, spec=box.spec)


async def test_a_restart_finds_environments_and_they_run_commands(
    opened: Opened, make_box: MakeBox, labels: dict[str, str]
) -> None:
    running = await make_box(labels={"which": "running"}, env={"KEPT": "yes"})
    stopped = await make_box(labels={"which": "stopped"})
    created = await make_box(start=False, labels={"which": "created"})
    await running.sh("echo before > file")
    await stopped.stop()

    again = await after_a_restart(opened, running)
    found = {state.labels["which"]: state for state in await again.runtime.list(labels)}
    assert {name: state.status for name, state in found.items()} == {
        "running": Status.RUNNING,
        "stopped": Status.STOPPED,
        "created": Status.CREATED,
    }
    assert found["running"].runtime_id == running.runtime_id
    assert found["running"].name == running.spec.name
    assert found["running"].labels.items() >= running.spec.labels.items()
    ran = await again.sh('cat file; echo "$KEPT"')
    assert ran.stdout == b"before\nyes\n"
    for other in (stopped, created):
        box = await Box(runtime=again.runtime, runtime_id=other.runtime_id, spec=other.spec).start()
        assert (await box.sh("echo up")).stdout == b"up\n"
    await again.stop()
    assert (await again.runtime.inspect(again.runtime_id)).status is Status.STOPPED
    await again.runtime.remove(again.runtime_id)
    with pytest.raises(NotFoundError):
        await again.runtime.inspect(again.runtime_id)


async def test_processes_go_on_while_no_manager_is_there(opened: Opened, box: Box) -> None:
    await box.sh("setsid sh -c 'while :; do echo tick >> ticks; sleep 0.05; done' >/dev/null 2>&1 &")
    await eventually(lambda: box.has("ticks"), what="the daemon ticks")
    await box.runtime.close()
    before = (await box.volume.stat("ticks")).size

    async def grew() -> bool:
        return (await box.volume.stat("ticks")).size > before

    await eventually(grew, what="the daemon ticks on")
    again = await after_a_restart(opened, box)
    assert (await again.sh("echo up")).stdout == b"up\n"


async def test_m10_removal_by_hand_is_told_by_the_next_call(host: Host, box: Box) -> None:
    await host.remove_by_hand(box.spec, box.runtime_id)

    async def told() -> bool:
        try:
            await (await box.stream("true")).aclose()
        except (NotFoundError, NotRunningError):
            return True
        return False

    await eventually(told, within=5, what="a call says that it is gone")
    with pytest.raises((NotFoundError, NotRunningError)):
        await box.runtime.stats(box.runtime_id)
    await box.runtime.remove(box.runtime_id)
    with pytest.raises(NotFoundError):
        await box.runtime.inspect(box.runtime_id)


async def test_m10_removal_by_hand_is_told_by_an_event(host: Host, box: Box, runtime: Runtime) -> None:
    async with aclosing(runtime.events()) as events:  # type: ignore[type-var]
        first = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.3)  # until the engine has taken our subscription
        await host.remove_by_hand(box.spec, box.runtime_id)
        async with asyncio.timeout(10):
            event = await first
            while event.runtime_id != box.runtime_id or event.status not in (Status.REMOVED, Status.STOPPED):
                event = await anext(events)


async def test_m10_a_command_of_one_removed_by_hand_is_told_its_loss(host: Host, box: Box) -> None:
    stream = await box.stream("sleep", mark())
    ending = asyncio.ensure_future(collect(stream))
    await asyncio.sleep(0.1)
    await host.remove_by_hand(box.spec, box.runtime_id)
    async with asyncio.timeout(10):
        with pytest.raises(SandboxLostError):
            await ending


async def test_two_runtimes_at_once_do_not_meet(host: Host, make_box: MakeBox, runtime: Runtime) -> None:
    other = host.runtime()
    await other.open()
    mine = await make_box(labels={"sandbox-data-dir": f"mine-{mark()}"})
    theirs = await make_box(runtime=other, labels={"sandbox-data-dir": f"theirs-{mark()}"})
    try:
        for box in (mine, theirs):
            own = {"sandbox-data-dir": box.spec.labels["sandbox-data-dir"]}
            assert [state.runtime_id for state in await box.runtime.list(own)] == [box.runtime_id]
        number = mark()
        await mine.leave(number)
        await mine.write("mine.txt", b"private")
        assert await other.kill_processes(theirs.runtime_id, number) == []
        assert await mine.pids_of(number)
        assert await theirs.volume.list() == []
        await other.remove(theirs.runtime_id)
        assert (await mine.sh("echo up")).stdout == b"up\n"
    finally:
        for box in (mine, theirs):
            await box.runtime.remove(box.runtime_id)
        await other.close()


async def test_close_twice_is_close_once(host: Host) -> None:
    runtime = host.runtime()
    await runtime.open()
    await runtime.close()
    await runtime.close()
