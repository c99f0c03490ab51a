"""Commands: their arguments, output, input and end."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.box import Box, collect, mark, receive_until, sha
from tests.contract.conftest import MakeBox
from tests.contract.hosts import Host, host_of, hosts
from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.errors import CommandNotFoundError, NotRunningError, SandboxLostError
from yaosb_jupyter.tai.runtimes.base import Capability, ExecStream, RuntimeInfo

MIB = 2**20
EVERY_BYTE = bytes(range(256))


@pytest.fixture(params=hosts("memory", "docker", "docker-relay", "docker-tls", "docker-engine", "embedded"))
def host(request: pytest.FixtureRequest, directory: Path) -> Iterator[Host]:
    yield from host_of(request.param, directory)


@pytest.mark.parametrize("code", [0, 1, 3, 127, 255])
async def test_the_exit_code_is_told(code: int, box: Box) -> None:
    ran = await box.sh(f"exit {code}")
    assert ran.code == code
    assert ran.status.signal is None
    assert not ran.status.timed_out


async def test_death_by_a_signal_is_told(box: Box) -> None:
    ran = await box.sh("kill -9 $$")
    assert ran.code == 137
    assert ran.status.signal in (9, None)


async def test_the_duration_is_told(box: Box) -> None:
    ran = await box.sh("sleep 0.3")
    assert 0.25 < ran.status.duration < 5


async def test_stdout_and_stderr_are_apart(box: Box) -> None:
    ran = await box.sh("echo out; echo err >&2; echo out; echo err >&2")
    assert (ran.stdout, ran.stderr) == (b"out\nout\n", b"err\nerr\n")


async def test_output_arrives_as_it_is_written(box: Box) -> None:
    stream = await box.stream("sh", "-c", "echo first; sleep 30")
    async with asyncio.timeout(5):
        assert await stream.receive() == (ExecChannel.STDOUT, b"first\n")
    await stream.cancel(0.1)


async def test_x1_x17_all_bytes_come_before_the_exit_code(box: Box) -> None:
    code = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 32768); sys.stdout.flush(); sys.exit(7)"
    ran = await box.python(code)
    assert ran.code == 7
    assert len(ran.stdout) == 8 * MIB
    assert sha(ran.stdout) == sha(EVERY_BYTE * 32768)


async def test_x1_last_words_are_never_lost(box: Box) -> None:
    for number in range(20):
        ran = await box.sh(f"echo out {number}; echo err {number} >&2; exit {number}")
        assert (ran.code, ran.stdout, ran.stderr) == (number, b"out %d\n" % number, b"err %d\n" % number)


async def test_x5_stdin_is_streamed_and_ends(box: Box) -> None:
    data = EVERY_BYTE * 12 * 1024
    async with asyncio.timeout(30):
        ran = await box.run("cat", stdin=data)
    assert sha(ran.stdout) == sha(data)
    assert ran.code == 0


async def test_x5_empty_stdin_ends(box: Box) -> None:
    async with asyncio.timeout(10):
        assert (await box.run("cat", stdin=b"")).stdout == b""


async def test_x5_without_stdin_a_command_reads_its_end_at_once(box: Box) -> None:
    async with asyncio.timeout(10):
        ran = await box.sh("cat; echo done")
    assert ran.stdout == b"done\n"


async def test_stdin_is_a_conversation(box: Box) -> None:
    stream = await box.stream("sh", "-c", "while read line; do echo got $line; done; echo end", stdin=True)
    async with asyncio.timeout(15):
        for word in (b"one", b"two"):
            await stream.send(word + b"\n")
            await receive_until(stream, b"got " + word + b"\n")
        await stream.close_stdin()
        await stream.close_stdin()
        ran = await collect(stream)
    assert ran.stdout == b"end\n"


async def test_a_command_that_does_not_read_its_stdin_hangs_nobody(box: Box) -> None:
    async with asyncio.timeout(20):
        ran = await box.sh("head -c 1; exec 0<&-; exit 4", stdin=b"x" * (4 * MIB))
    assert (ran.code, ran.stdout) == (4, b"x")


ARGUMENTS = (
    "",
    " ",
    "two words",
    "it's",
    'say "x"',
    "$HOME",
    "`id`",
    "$(id)",
    "a;b|c&d>e",
    "*",
    "\\",
    "\\n",
    "new\nline",
    "tab\t",
    "-e",
    "--",
    "naïve 日本語 🐍",
    "=",
    "a=b",
    "%s",
    "",
)


async def test_x6_argv_stays_argv(box: Box) -> None:
    ran = await box.python("import json, sys; print(json.dumps(sys.argv[1:]))", *ARGUMENTS)
    assert json.loads(ran.stdout) == list(ARGUMENTS)


async def test_x6_argv_stays_argv_with_cwd_and_env(box: Box) -> None:
    await box.volume.mkdir("sub dir/深い")
    values = {f"VALUE_{number}": value for number, value in enumerate(ARGUMENTS)}
    code = """
import json, os, sys
values = {name: value for name, value in os.environ.items() if name.startswith("VALUE_")}
print(json.dumps([os.getcwd(), values, sys.argv[1:]]))
"""
    for cwd in ("sub dir/深い", "/workspace/sub dir/深い"):
        ran = await box.python(code, *ARGUMENTS, cwd=cwd, env={**values, "LC_ALL": "C.UTF-8"})
        assert ran.code == 0, ran.stderr
        found, env, argv = json.loads(ran.stdout)
        assert found.endswith("/sub dir/深い")
        assert env == values
        assert argv == list(ARGUMENTS)


async def test_a_command_runs_in_the_workspace(box: Box) -> None:
    await box.write("here", b"")
    assert (await box.run("ls")).stdout == b"here\n"


async def test_x7_no_such_command(box: Box) -> None:
    stream = await box.stream("no-such-command", "x")
    assert await stream.receive() is None
    for _ in range(2):
        with pytest.raises(CommandNotFoundError, match="no-such-command") as caught:
            await stream.wait()
        assert caught.value.exit_code == 127
    await stream.cancel()


async def test_x7_no_such_path(box: Box) -> None:
    with pytest.raises(CommandNotFoundError) as caught:
        await box.run("/no/such/command")
    assert caught.value.exit_code == 127


async def test_x7_not_executable(box: Box) -> None:
    await box.write("data.txt", b"hello", mode=0o644)
    with pytest.raises(CommandNotFoundError) as caught:
        await box.run("./data.txt")
    assert caught.value.exit_code == 126


async def test_x7_no_such_directory(box: Box) -> None:
    with pytest.raises(CommandNotFoundError, match="nowhere") as caught:
        await box.run("true", cwd="/nowhere/at/all")
    assert caught.value.exit_code in (126, 127)


async def test_x7_no_such_user(box: Box) -> None:
    with pytest.raises(CommandNotFoundError, match="nosuchuser") as caught:
        await box.run("true", user="nosuchuser")
    assert caught.value.exit_code in (126, 127)


async def test_x7_a_command_not_found_with_stdin_to_send(box: Box) -> None:
    async with asyncio.timeout(10):
        with pytest.raises(CommandNotFoundError):
            await box.run("no-such-command", stdin=b"x" * MIB)


async def test_a_command_that_itself_ends_with_127_is_no_error(box: Box) -> None:
    ran = await box.sh("no-such-command-in-the-shell")
    assert ran.code == 127
    assert b"not found" in ran.stderr


async def test_a_command_runs_as_another_user(make_box: MakeBox, info: RuntimeInfo) -> None:
    box = await make_box()
    default = int((await box.run("id", "-u")).stdout)
    if Capability.USERS in info.capabilities:
        assert (await box.run("id", "-u", user="root")).stdout == b"0\n"
        assert (await box.run("id", "-u", user="12345:54321")).stdout == b"12345\n"
        other = await make_box(user="root")
        assert (await other.run("id", "-u")).stdout == b"0\n"
    else:
        assert (await box.run("id", "-u", user=str(default))).stdout == b"%d\n" % default


async def test_wait_drops_what_was_not_received_and_can_be_repeated(box: Box) -> None:
    stream = await box.stream("sh", "-c", "head -c 4000000 /dev/zero; exit 5")
    async with asyncio.timeout(20):
        first = await stream.wait()
        assert first.exit_code == 5
        assert await stream.wait() == first
        assert await stream.receive() is None
        await stream.cancel()
        await stream.aclose()


async def test_a_daemon_that_holds_stdout_open_does_not_hang_its_command(box: Box) -> None:
    began = time.monotonic()
    ran = await box.sh(f"sleep {mark()} & echo started")
    assert ran.stdout == b"started\n"
    assert time.monotonic() - began < 5


async def test_what_a_command_left_behind_lives_on(box: Box) -> None:
    number = mark()
    await box.leave(number)
    assert await box.pids_of(number)


async def test_several_commands_at_once_do_not_mix(box: Box) -> None:
    async def one(number: int) -> None:
        ran = await box.sh(f"for i in 1 2 3 4 5; do echo {number}; sleep 0.02; done; exit {number}")
        assert (ran.code, ran.stdout) == (number, b"%d\n" % number * 5)

    async with asyncio.timeout(40):
        await asyncio.gather(*(one(number) for number in range(20)))


async def test_x9_a_slow_reader_stops_its_own_command_only(box: Box) -> None:
    code = """
import os
with open("written", "w", buffering=1) as told:
    for number in range(400):
        os.write(1, b"x" * 2**20)
        told.seek(0)
        told.write(f"{number:04}")
"""
    stream = await box.stream("python3", "-c", code)
    await stream.receive()
    await asyncio.sleep(1)
    assert int(await box.read("written") or b"0") < 64
    assert (await box.sh("echo free")).stdout == b"free\n"
    await stream.cancel(0.1)


async def test_x9_a_slow_reader_is_no_hoarder(box: Box) -> None:
    stream = await box.stream("head", "-c", str(300 * MIB), "/dev/zero")
    await asyncio.sleep(0.5)
    before = await asyncio.to_thread(_resident)
    most, total = before, 0
    while piece := await stream.receive():
        total += len(piece[1])
        if total % (8 * MIB) < len(piece[1]):
            await asyncio.sleep(0.005)
            most = max(most, await asyncio.to_thread(_resident))
    assert (await stream.wait()).exit_code == 0
    assert total == 300 * MIB
    assert most - before < 64 * MIB


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def test_stop_ends_a_running_command(box: Box) -> None:
    stream = await running(box)
    ending = asyncio.ensure_future(collect(stream))
    await box.stop(timeout=1)
    async with asyncio.timeout(10):
        try:
            assert (await ending).code != 0
        except SandboxLostError:
            pass  # as good: the environment went from under it


async def test_remove_under_a_running_command_is_told_as_its_loss(box: Box) -> None:
    stream = await running(box)
    ending = asyncio.ensure_future(collect(stream))
    await box.runtime.remove(box.runtime_id)
    async with asyncio.timeout(10):
        with pytest.raises(SandboxLostError):
            await ending


async def test_remove_under_a_command_that_begins_is_told(box: Box) -> None:
    stream = await box.stream("sleep", mark())
    ending = asyncio.ensure_future(collect(stream))
    await box.runtime.remove(box.runtime_id)
    async with asyncio.timeout(10):
        with pytest.raises((SandboxLostError, NotRunningError)):
            await ending


async def running(box: Box) -> ExecStream:
    """A command that goes on, and has begun."""
    stream = await box.stream("sh", "-c", f"echo begun; exec sleep {mark()}")
    await receive_until(stream, b"begun")
    return stream
