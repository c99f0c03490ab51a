"""FAULTS.md, X and M6: what commands must not get wrong as callers of the manager see it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator

import pytest

from tests.manager.conftest import ENGINE_RIGS, RIGS, OpenManager
from tests.manager.rigs import MemoryRig, Rig
from tests.manager.waiting import until
from yaosb_jupyter.choices import Status
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import (
    CommandNotFoundError,
    ExecFailedError,
    ExecTimeoutError,
    InvalidOptionError,
    NotFoundError,
    NotRunningError,
    OutputLimitExceededError,
    SandboxError,
    SandboxLostError,
)
from yaosb_jupyter.types import Exit


@pytest.fixture
async def sandbox(manager: AsyncManager) -> AsyncSandbox:
    return await manager.create("lab")


async def _runs(sandbox: AsyncSandbox, marker: str) -> bool:
    """Whether a process with ``marker`` in its command line runs inside; the asking shell does not count."""
    hidden = marker[:-1] + "[" + marker[-1] + "]"
    script = f"cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -q '{hidden}'"
    return (await sandbox.exec(script)).exit_code == 0


def _marker() -> str:
    return f"86{os.getpid()}{time.monotonic_ns() % 10**6}"


async def test_x1_all_bytes_come_before_the_exit(sandbox: AsyncSandbox) -> None:
    result = await sandbox.exec("head -c 3000000 /dev/zero; echo -n end", encoding=None)
    assert len(result.stdout) == 3000003
    assert result.stdout.endswith(b"end")
    events = [event async for event in sandbox.stream("echo -n x")]
    assert isinstance(events[-1], Exit)


@pytest.mark.parametrize("rig", RIGS[1:], indirect=True)
async def test_x3_cancel_after_an_interrupt_ends_what_ignored_it(sandbox: AsyncSandbox) -> None:
    marker = _marker()
    stream = sandbox.stream(f"trap '' INT; sleep {marker} >/dev/null 2>&1 & trap - INT; echo ready; exec sleep 1000")
    async with stream:
        events = aiter(stream)
        await anext(events)
        await stream.signal(2)
        assert (await stream.wait()).exit_code == 130
        assert await _runs(sandbox, marker)
        await stream.cancel(0.0)
    assert not await _runs(sandbox, marker)


async def test_x3_x4_a_timeout_ends_the_whole_tree_on_time(sandbox: AsyncSandbox) -> None:
    marker = _marker()
    began = time.monotonic()
    with pytest.raises(ExecTimeoutError) as caught:
        await sandbox.exec(f"echo before; setsid sleep {marker} & sleep {marker}", timeout=0.5)
    assert 0.4 <= time.monotonic() - began < 5
    assert caught.value.result is not None
    assert caught.value.result.stdout == "before\n"
    assert not await _runs(sandbox, marker)


async def test_x4_a_timeout_is_on_time_while_output_flows(sandbox: AsyncSandbox) -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        await sandbox.exec("while :; do echo y; done", timeout=0.5, max_output=1000)
    assert time.monotonic() - began < 5


async def test_x5_stdin_is_given_or_ends_at_once(sandbox: AsyncSandbox) -> None:
    async with asyncio.timeout(20):
        assert (await sandbox.exec(["cat"])).stdout == ""
        assert (await sandbox.exec(["cat"], stdin="text\n")).stdout == "text\n"
        assert (await sandbox.exec(["cat"], stdin=b"\x00\xff", encoding=None)).stdout == b"\x00\xff"
        assert (await sandbox.exec(["wc", "-c"], stdin=_pieces())).stdout.strip() == "3000000"
        assert (await sandbox.exec(["true"], stdin=b"x" * 3_000_000)).exit_code == 0  # nobody reads it


async def _pieces() -> AsyncIterator[bytes]:
    for _ in range(3):
        yield b"x" * 1_000_000


async def test_x6_argv_stays_argv(sandbox: AsyncSandbox) -> None:
    argv = ["printf", "%s|", "a b", "$HOME", "`id`", "'\"", "", "é\n", "*"]
    assert (await sandbox.exec(argv)).stdout == "a b|$HOME|`id`|'\"||é\n|*|"
    result = await sandbox.exec("echo $NAME; pwd", env={"NAME": "a  b"}, cwd="/")
    assert result.stdout == "a  b\n/\n" or result.stdout == "a b\n/\n"


@pytest.mark.parametrize("command", [["no-such-command-here"], ["/no/such/command"]])
async def test_x7_a_command_that_is_not_there(sandbox: AsyncSandbox, command: list[str]) -> None:
    with pytest.raises(CommandNotFoundError) as caught:
        await sandbox.exec(command)
    assert caught.value.exit_code == 127
    assert caught.value.sandbox == "lab"
    assert (await sandbox.exec("no-such-command-here")).exit_code == 127  # the shell's own word


async def test_x7_a_working_directory_that_is_not_there(sandbox: AsyncSandbox) -> None:
    with pytest.raises(CommandNotFoundError) as caught:
        await sandbox.exec(["true"], cwd="/no/such/directory")
    assert caught.value.exit_code in (126, 127)


async def test_x8_characters_cut_at_chunk_borders(sandbox: AsyncSandbox) -> None:
    pieces: list[str] = []
    await sandbox.exec(
        r"printf '\303'; sleep 0.2; printf '\251\342\202'; sleep 0.2; printf '\254'", on_stdout=pieces.append
    )
    assert "".join(pieces) == "é€"


async def test_x15_exec_on_what_does_not_run_fails_at_once(manager: AsyncManager, sandbox: AsyncSandbox) -> None:
    await sandbox.stop()
    with pytest.raises(NotRunningError, match="stopped"):
        await sandbox.exec("true")
    with pytest.raises(NotRunningError):
        await sandbox.stats()
    waiting = await manager.create("waiting", start=False)
    with pytest.raises(NotRunningError, match="created"):
        await waiting.exec("true")
    await sandbox.remove()
    with pytest.raises(NotFoundError):
        await sandbox.exec("true")


async def test_x17_bytes_stay_bytes(sandbox: AsyncSandbox) -> None:
    every = bytes(range(256)) * 40
    assert (await sandbox.exec(["cat"], stdin=every, encoding=None)).stdout == every
    text = await sandbox.exec(["cat"], stdin=every, errors="surrogateescape")
    assert text.stdout.encode(errors="surrogateescape") == every


@pytest.mark.parametrize("rig", ENGINE_RIGS, indirect=True)
async def test_a_sandbox_that_vanishes_is_lost_not_137(sandbox: AsyncSandbox, rig: Rig) -> None:
    runtime_id = (await sandbox.info()).runtime_id
    running = asyncio.create_task(sandbox.exec("echo up; sleep 60"))
    await until(lambda: _runs(sandbox, "sleep 60"))
    await asyncio.to_thread(rig.vanish, runtime_id)
    with pytest.raises(SandboxLostError, match="lab"):
        await running


async def test_a_sandbox_stopped_under_a_command_is_lost(manager: AsyncManager, sandbox: AsyncSandbox) -> None:
    marker = _marker()
    running = asyncio.create_task(sandbox.exec(["sleep", marker]))
    await until(lambda: _runs(sandbox, marker))
    await manager.stop("lab", timeout=0)
    with pytest.raises(SandboxLostError, match="lab") as caught:
        await running
    assert caught.value.hint == "start it"


async def test_a_sandbox_removed_under_a_command_is_not_to_be_started(
    manager: AsyncManager, sandbox: AsyncSandbox
) -> None:
    marker = _marker()
    running = asyncio.create_task(sandbox.exec(["sleep", marker]))
    await until(lambda: _runs(sandbox, marker))
    await manager.remove("lab")
    with pytest.raises(SandboxLostError, match="it was removed") as caught:
        await running
    assert caught.value.hint == "create it again"


async def test_a_killed_command_is_no_lost_sandbox(sandbox: AsyncSandbox) -> None:
    result = await sandbox.exec("kill -9 $$")
    assert result.exit_code == 137


async def test_check_raises_with_the_result(sandbox: AsyncSandbox) -> None:
    with pytest.raises(ExecFailedError, match="exit code 3: why") as caught:
        await sandbox.exec("echo out; echo why >&2; exit 3", check=True)
    assert caught.value.result is not None
    assert caught.value.result.stdout == "out\n"


async def test_output_caps_keep_the_end_and_say_so(sandbox: AsyncSandbox) -> None:
    result = await sandbox.exec("seq 1 100000", max_output=1000)
    assert result.truncated
    assert len(result.stdout) <= 1000
    assert result.stdout.endswith("99999\n100000\n")
    whole = await sandbox.exec("seq 1 10", max_output=1000)
    assert not whole.truncated


async def test_output_caps_can_end_the_command(sandbox: AsyncSandbox) -> None:
    async with asyncio.timeout(20):
        with pytest.raises(OutputLimitExceededError) as caught:
            await sandbox.exec("while :; do echo y; done", max_output="4k", truncate=False)
    assert caught.value.result is not None
    assert caught.value.result.stdout.endswith("y\n")


async def test_ending_a_command_that_writes_without_end_costs_the_command_only(sandbox: AsyncSandbox) -> None:
    for _ in range(6):
        with pytest.raises(OutputLimitExceededError):
            await sandbox.exec("yes", max_output="1m", truncate=False)
        async with sandbox.stream("yes", encoding=None) as stream:
            events = aiter(stream)
            for _ in range(5):
                await anext(events)
            await stream.cancel()
    assert (await sandbox.exec("echo well")).stdout == "well\n"
    assert (await sandbox.info()).status is Status.RUNNING


@pytest.mark.parametrize("rig", RIGS[1:], indirect=True)
async def test_a_reader_who_is_late_at_the_timeout_keeps_the_sandbox(
    sandbox: AsyncSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yaosb_jupyter.link.exec.BACKSTOP", 0.5)
    async with sandbox.stream("yes", encoding=None, timeout=0.2) as stream:
        events = aiter(stream)
        await anext(events)
        await asyncio.sleep(0.2 + 2 + 3 * 0.5)  # what is tested is a time: it has passed, and nobody has read
        status = await stream.wait()
    assert status.timed_out
    assert (await sandbox.info()).status is Status.RUNNING


async def test_a_command_line_that_no_frame_holds_is_refused(sandbox: AsyncSandbox) -> None:
    with pytest.raises(InvalidOptionError, match="too large"):
        await sandbox.exec(["true", *["x" * 100_000] * 12])
    with pytest.raises(InvalidOptionError, match="too large"):
        await sandbox.exec(["true"], env={f"LONG{number}": "\N{PILE OF POO}" * 10_000 for number in range(12)})


async def test_an_input_that_its_encoding_has_no_bytes_for_is_refused(sandbox: AsyncSandbox) -> None:
    with pytest.raises(InvalidOptionError, match="stdin"):
        await sandbox.exec(["cat"], stdin="\ud800")


@pytest.mark.parametrize("rig", RIGS[1:], indirect=True)
async def test_what_the_sandbox_adds_may_be_too_much(manager: AsyncManager) -> None:
    full = await manager.create("full", env={f"LONG{number}": "x" * 100_000 for number in range(5)})
    with pytest.raises(InvalidOptionError, match="too large"):
        await full.exec(["true", *["x" * 100_000] * 6])
    assert (await full.exec("echo well")).stdout == "well\n"


async def test_what_a_callback_raises_reaches_the_caller_and_ends_the_command(sandbox: AsyncSandbox) -> None:
    marker = _marker()

    def refuse(text: str) -> None:
        raise KeyError(text)

    with pytest.raises(KeyError, match="one"):
        await sandbox.exec(f"echo one; exec sleep {marker}", on_stdout=refuse)
    assert not await _runs(sandbox, marker)


async def test_what_an_input_raises_reaches_the_caller_and_ends_the_command(sandbox: AsyncSandbox) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"one"
        raise KeyError("two")

    async with asyncio.timeout(20):
        with pytest.raises(KeyError, match="two"):
            await sandbox.exec(["cat"], stdin=broken())


async def test_callbacks_may_be_coroutines(sandbox: AsyncSandbox) -> None:
    seen: list[tuple[str, str]] = []

    async def on_stdout(text: str) -> None:
        await asyncio.sleep(0)
        seen.append(("out", text))

    await sandbox.exec("echo a; echo b >&2", on_stdout=on_stdout, on_stderr=lambda text: seen.append(("err", text)))
    assert sorted(seen) == [("err", "b\n"), ("out", "a\n")]


async def test_a_cancelled_exec_ends_the_command(sandbox: AsyncSandbox) -> None:
    marker = _marker()
    running = asyncio.create_task(sandbox.exec(["sleep", marker]))
    await until(lambda: _runs(sandbox, marker))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not await _runs(sandbox, marker)


async def test_a_stream_that_is_left_ends_the_command(sandbox: AsyncSandbox) -> None:
    marker = _marker()
    async with sandbox.stream(f"echo up; exec sleep {marker}") as stream:
        async for _event in stream:
            break
    assert not await _runs(sandbox, marker)


async def test_kill_process_by_pattern(sandbox: AsyncSandbox) -> None:
    marker = _marker()
    running = asyncio.create_task(sandbox.exec(["sleep", marker]))
    await until(lambda: _runs(sandbox, marker))
    assert len(await sandbox.kill_process(f"^sleep {marker}$")) == 1
    assert (await running).exit_code in (128 + 15, 128 + 9)
    assert (await sandbox.exec("true")).exit_code == 0
    for bad in ("", "("):
        with pytest.raises(InvalidOptionError, match="pattern"):
            await sandbox.kill_process(bad)


async def _read_all(sandbox: AsyncSandbox) -> None:
    async for _event in sandbox.stream("echo x"):
        pass


async def _leave(sandbox: AsyncSandbox) -> None:
    async with sandbox.stream("sleep 60"):
        pass


async def _cancelled(sandbox: AsyncSandbox) -> None:
    async with asyncio.timeout(0.3):
        await sandbox.exec("sleep 60")


ENDS = {
    "exit 0": lambda sandbox: sandbox.exec("true"),
    "failure": lambda sandbox: sandbox.exec("exit 3", check=True),
    "no such command": lambda sandbox: sandbox.exec(["no-such-command-here"]),
    "timeout": lambda sandbox: sandbox.exec("sleep 60", timeout=0.2),
    "stream": _read_all,
    "stream left": _leave,
    "cancelled": _cancelled,
    "callback": lambda sandbox: sandbox.exec("echo x", on_stdout=lambda text: 1 / 0),
}


@pytest.mark.parametrize("how", ENDS)
async def test_m6_a_one_shot_is_removed_however_its_command_ends(manager: AsyncManager, how: str) -> None:
    sandbox = await manager.create(lifecycle="one-shot")
    try:
        await ENDS[how](sandbox)
    except (SandboxError, ZeroDivisionError, TimeoutError):
        pass

    async def gone() -> bool:
        return not await manager.list()

    await until(gone)


async def test_m6_a_one_shot_is_gone_when_its_result_is_there(manager: AsyncManager) -> None:
    sandbox = await manager.create("once", lifecycle="oneshot")
    await sandbox.files.write("in.txt", "files are no use of its one shot")
    assert (await sandbox.exec(["cat", "in.txt"])).stdout.startswith("files")
    with pytest.raises(NotFoundError):
        await manager.get("once")


async def test_m6_a_client_that_goes_away_removes_its_one_shot(
    open_on_memory: OpenManager, memory_rig: MemoryRig
) -> None:
    manager = await open_on_memory()
    sandbox = await manager.create(lifecycle="one-shot")
    stream = sandbox.stream("echo up; sleep 60")
    await anext(aiter(stream))
    await manager.close()
    assert memory_rig.held() == set()


async def test_x16_concurrent_one_shots_are_isolated(manager: AsyncManager) -> None:
    async def one(number: int) -> str:
        sandbox = await manager.create(lifecycle="one-shot")
        return (await sandbox.exec(f"echo {number} > f; sleep 0.1; cat f")).stdout.strip()

    assert await asyncio.gather(*(one(number) for number in range(4))) == ["0", "1", "2", "3"]
    assert not await manager.list()


async def test_m6_a_one_shot_that_cannot_be_removed_still_gives_its_result(
    open_on_memory: OpenManager, memory_rig: MemoryRig
) -> None:
    manager = await open_on_memory()
    sandbox = await manager.create(lifecycle="one-shot")
    memory_rig.engine.fail_next("remove", SandboxError("busy"))
    assert (await sandbox.exec(["echo", "done"])).stdout == "done\n"

    async def gone() -> bool:
        return not await manager.list()

    await until(gone)
