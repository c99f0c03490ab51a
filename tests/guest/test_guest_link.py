"""The link: who may be the guest, what a break costs, and that nothing runs twice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.contract.box import collect, eventually, mark
from tests.guest.rig import Guest, guest, new_link
from yaosb_jupyter.errors import AuthError, CommandNotFoundError, NotRunningError, SandboxLostError
from yaosb_jupyter.guest import frames, processes
from yaosb_jupyter.link.commands import exec_request
from yaosb_jupyter.link.connection import Connection, Handler, RemoteError, Stream, dial_unix
from yaosb_jupyter.link.guest import MAX_STRANGERS
from yaosb_jupyter.options import ExecOptions


def living(number: str) -> bool:
    table = processes.scan()
    return any(processes.command_line(pid) == f"sleep {number}" for pid in processes.alive(table, table))


async def test_n12_without_the_key_nobody_is_the_guest(tmp_path: Path) -> None:
    async with guest(tmp_path) as running:
        link = await running.link.connected(10)
        for key in ("", "x" * 43, running.key[:-1], running.key + "x", None, 7, "\ud800", "é", [[]]):
            with pytest.raises(AuthError):
                await dial_unix(tmp_path / "link.sock", {"key": key})
        assert await running.link.connected(1) is link
        assert (await running.run("echo", "here"))[1] == b"here\n"


async def test_n12_strangers_cannot_crowd_the_guest_out(tmp_path: Path) -> None:
    async with guest(tmp_path) as running, contextlib.AsyncExitStack() as stack:
        await running.link.connected(10)
        waiting = []
        for _ in range(MAX_STRANGERS + 5):
            stranger = stack.enter_context(socket.socket(socket.AF_UNIX))
            stranger.setblocking(False)
            stranger.connect(str(tmp_path / "link.sock"))
            waiting.append(stranger)
        loop = asyncio.get_running_loop()
        assert await asyncio.wait_for(loop.sock_recv(waiting[-1], 1), 5) == b"", "turned away at once"
        assert (await running.run("echo", "here"))[1] == b"here\n"


async def test_x15_who_waits_for_a_link_is_told_when_the_sandbox_ends(tmp_path: Path) -> None:
    link = new_link(tmp_path, "key")
    await link.listen()
    waiting = asyncio.ensure_future(link.connected(1000))
    await asyncio.sleep(0)
    await link.close("its processes were killed")
    async with asyncio.timeout(5):
        with pytest.raises(NotRunningError, match="its processes were killed"):
            await waiting
        with pytest.raises(NotRunningError, match="its processes were killed"):
            await link.call("processes", {})


async def test_the_newest_with_the_key_is_the_link(tmp_path: Path) -> None:
    async with guest(tmp_path) as running:
        first = await running.link.connected(10)
        second = await dial_unix(tmp_path / "link.sock", {"key": running.key})
        await first.wait_closed()
        await second.close()
        assert (await running.run("echo", "back"))[1] == b"back\n"


@pytest.mark.parametrize(
    "garbage",
    [b"\xff" * 64, struct.pack("!IBI", 2, frames.HELLO, 0) + b"{]", struct.pack("!IBI", 1 << 30, frames.OPEN, 2)],
)
async def test_garbage_costs_its_sender_the_connection_only(garbage: bytes, tmp_path: Path) -> None:
    async with guest(tmp_path) as running:
        await running.link.connected(10)
        _, writer = await asyncio.open_unix_connection(str(tmp_path / "link.sock"))
        writer.write(garbage)
        await writer.drain()
        writer.close()
        assert (await running.run("echo", "here"))[1] == b"here\n"


async def test_a_command_outlives_a_break_and_the_guest_dials_again(tmp_path: Path) -> None:
    number = mark()
    async with guest(tmp_path) as running:
        stream = await running.exec("sleep", number)
        await eventually(lambda: asyncio.to_thread(living, number), what="it runs")
        await running.relink()
        with pytest.raises(SandboxLostError):
            await stream.wait()
        assert (await running.run("echo", "back"))[1] == b"back\n"
        assert await asyncio.to_thread(living, number)


async def test_a_command_whose_link_does_not_come_back_is_cancelled(tmp_path: Path) -> None:
    number = mark()
    async with guest(tmp_path, patience=0.5) as running:
        await running.exec("sleep", number)
        await eventually(lambda: asyncio.to_thread(living, number), what="it runs")
        await running.link.close()

        async def gone() -> bool:
            return not await asyncio.to_thread(living, number)

        await eventually(gone, within=5, what="it was cancelled")


def request(exec_id: str, tmp_path: Path) -> dict[str, object]:
    argv = ("sh", "-c", "echo ran >> runs; sleep 0.3; exit 5")
    return exec_request(exec_id, ExecOptions(argv=argv), cwd="", env={})


async def test_a_retry_never_runs_twice(tmp_path: Path) -> None:
    async with guest(tmp_path) as running:
        connection = await running.link.connected(10)
        first = connection.open("exec", request("e1", tmp_path))
        result = await connection.call("exec", request("e1", tmp_path))
        with pytest.raises(RemoteError):  # the newest reader has it
            await first.result()
        again = await connection.call("exec", request("e1", tmp_path))
        assert again == result
        assert again["exit_code"] == 5
        assert (tmp_path / "runs").read_text() == "ran\n"


async def test_a_retry_over_a_new_link_never_runs_twice(tmp_path: Path) -> None:
    async with guest(tmp_path) as running:
        connection = await running.link.connected(10)
        connection.open("exec", request("e1", tmp_path))
        await eventually(lambda: _exists(tmp_path / "runs"), what="it runs")
        link = await running.relink()
        connection = await link.connected(10)

        async def ended() -> bool:
            try:
                return bool((await connection.call("exec", request("e1", tmp_path)))["exit_code"] == 5)
            except RemoteError:  # it runs still
                return False

        await eventually(ended, what="its result is told")
        assert (tmp_path / "runs").read_text() == "ran\n"


async def _exists(path: Path) -> bool:
    return await asyncio.to_thread(path.exists)


async def test_a_bad_request_costs_its_stream_only(tmp_path: Path) -> None:
    async with guest(tmp_path) as running:
        connection = await running.link.connected(10)
        for arguments in ({}, {"exec_id": "e", "argv": 7}, {"exec_id": "f", "argv": ["true"], "env": 3}):
            with pytest.raises(RemoteError) as caught:
                await connection.call("exec", arguments)
            assert caught.value.code == "InvalidOptionError"
        with pytest.raises(RemoteError):
            await connection.call("no such operation")
        assert (await running.run("echo", "here"))[1] == b"here\n"


async def test_the_last_words_of_commands_come_before_its_own_end(tmp_path: Path) -> None:
    """Also what its reader has yet to take."""
    words = "trap 'exit 3' TERM; head -c 1200000 /dev/zero; touch written; while :; do sleep 0.01; done"
    async with guest(tmp_path) as running, asyncio.timeout(20):
        stream = await running.exec("sh", "-c", words)
        while not (tmp_path / "written").exists():  # noqa: ASYNC110 - a fact of the sandbox
            await asyncio.sleep(0.01)
        running.process.terminate()
        ran = await collect(stream)
        assert (len(ran.stdout), ran.code) == (1_200_000, 3)


async def test_a_command_that_cannot_start_can_be_tried_again(tmp_path: Path) -> None:
    async with guest(tmp_path) as running:
        for _ in range(2):
            with pytest.raises(CommandNotFoundError):
                await running.run("no-such-command")


class Killable:
    """What stands in for the process of a fake guest: it dies by losing its connection."""

    returncode = 0

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def kill(self) -> None:
        self._connection.write(b"\xff" * 32)


@asynccontextmanager
async def fake_guest(
    directory: Path, answer: dict[str, Any] | None, serve: Handler | None = None
) -> AsyncIterator[Guest]:
    """Has the key, and gives one answer to everything, or none; or serves as it is told."""

    async def give(stream: Stream) -> None:
        if answer is None:
            await asyncio.Event().wait()
        stream.close(answer)

    link = new_link(directory, "key")
    await link.listen()
    connection = await dial_unix(directory / "link.sock", {"key": "key"}, serve or give)
    process: Any = Killable(connection)
    try:
        yield Guest(process=process, link=link, directory=directory, key="key")
    finally:
        await connection.close()
        await link.close()


async def test_x4_a_guest_that_ignores_a_timeout_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yaosb_jupyter.link.exec.GUEST_GRACE", 0.1)
    monkeypatch.setattr("yaosb_jupyter.link.exec.BACKSTOP", 0.2)
    async with fake_guest(tmp_path, None) as running, asyncio.timeout(5):
        stream = await running.exec("true", timeout=0.1)
        with pytest.raises(SandboxLostError):
            await stream.wait()
        assert running.killed == 1


async def test_a_guest_that_ignores_a_cancel_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yaosb_jupyter.link.exec.BACKSTOP", 0.2)
    async with fake_guest(tmp_path, None) as running, asyncio.timeout(5):
        stream = await running.exec("true")
        await stream.cancel(0.1)
        assert running.killed == 1


async def test_an_endless_refusal_is_told_as_far_as_one_reads(tmp_path: Path) -> None:
    async def serve(stream: Stream) -> None:
        stream.fail({"code": "NotFoundError", "message": "m" * 900_000})

    async with fake_guest(tmp_path, None, serve) as running:
        with pytest.raises(SandboxLostError) as told:
            await (await running.exec("true")).wait()
    assert len(str(told.value)) < 1000


RESULT = {"exit_code": 0, "signal": None, "duration": 1.0, "timed_out": False}


@pytest.mark.parametrize(
    "wrong",
    [{"exit_code": "0"}, {"duration": None}, {"signal": []}, {"timed_out": 1}],
    ids=json.dumps,
)
async def test_a_result_that_is_none_is_a_loss(wrong: dict[str, Any], tmp_path: Path) -> None:
    async with fake_guest(tmp_path, {**RESULT, **wrong}) as running:
        stream = await running.exec("true")
        with pytest.raises(SandboxLostError):
            await stream.wait()


async def test_a_result_from_a_guest_is_taken(tmp_path: Path) -> None:
    async with fake_guest(tmp_path, RESULT) as running:
        assert (await (await running.exec("true")).wait()).exit_code == 0
