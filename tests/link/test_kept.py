"""What a guest keeps for a host that is away, and for how long; and guests that cannot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.contract.box import collect, eventually, mark
from tests.guest.rig import Guest, guest, new_link
from tests.guest.test_guest_link import living
from yaosb_jupyter.errors import NotAvailableError, NotFoundError, SandboxLostError
from yaosb_jupyter.guest import frames
from yaosb_jupyter.link.connection import Stream, dial_unix
from yaosb_jupyter.link.guest import GuestLink
from yaosb_jupyter.options import ExecOptions, TerminalSize
from yaosb_jupyter.tai.volumes.link import LinkVolume
from yaosb_jupyter.types import CommandInfo


async def spawn(link: GuestLink, *argv: str, **options: Any) -> CommandInfo:
    return await link.commands.spawn(ExecOptions(argv=argv, **options), cwd="", env={})


async def nothing() -> None: ...


async def gone(number: str) -> bool:
    return not await asyncio.to_thread(living, number)


async def known(link: GuestLink) -> set[str]:
    return {one.id for one in await link.commands.list()}


async def test_the_last_32_that_ended_in_the_background_are_kept(tmp_path: Path) -> None:
    async with guest(tmp_path) as running:
        ids = [(await spawn(running.link, "true", id=f"c{number}")).id for number in range(40)]
        for each in ids[-32:]:
            await (await running.link.commands.attach(each, since=None, kill=nothing)).wait()

        async def as_many() -> bool:
            return len(await known(running.link)) == 32

        await eventually(as_many)
        assert await known(running.link) == set(ids[-32:])
        with pytest.raises(NotFoundError):
            await spawn(running.link, "true", id="c0")  # it ran, and does not run again


async def test_ended_ones_are_kept_up_to_16_mib(tmp_path: Path) -> None:
    async with guest(tmp_path) as running:
        for number in range(20):
            command = await spawn(running.link, "head", "-c", "1048576", "/dev/zero", id=f"c{number}")
            await (await running.link.commands.attach(command.id, since=None, kill=nothing)).wait()
        kept = await running.link.commands.list()
        assert 14 <= len(kept) <= 16
        assert kept[-1].id == "c19"


async def test_an_end_that_is_acknowledged_is_forgotten(tmp_path: Path) -> None:
    async with guest(tmp_path) as running:
        for _ in range(3):
            await running.run("echo", "out")

        async def forgotten() -> bool:
            return not await known(running.link)

        await eventually(forgotten)


async def test_an_end_that_no_host_has_seen_waits_for_the_next(tmp_path: Path) -> None:
    async with guest(tmp_path) as running:
        stream = await running.exec(
            "sh", "-c", "echo before; sleep 0.3; echo ran >> runs; echo after; exit 3", id="mine"
        )
        stream.defer_acknowledgement()
        await stream.receive()
        link = await running.relink()
        await asyncio.sleep(0.5)
        again = await link.commands.attach("mine", since=0, kill=nothing)
        ran = await collect(again)
        assert (ran.stdout, ran.code) == (b"before\nafter\n", 3)
        assert (tmp_path / "runs").read_text() == "ran\n"


async def test_what_nobody_takes_up_again_is_ended_though_the_host_is_back(tmp_path: Path) -> None:
    number = mark()
    async with guest(tmp_path, patience=0.5) as running:
        await running.exec("sleep", number)
        await eventually(lambda: asyncio.to_thread(living, number), what="it runs")
        link = await running.relink()
        await link.connected(10)
        await eventually(lambda: gone(number), within=5, what="it was ended")


async def test_what_is_taken_up_again_goes_on(tmp_path: Path) -> None:
    number = mark()
    async with guest(tmp_path, patience=0.5) as running:
        await running.exec("sleep", number, id="mine")
        await eventually(lambda: asyncio.to_thread(living, number), what="it runs")
        link = await running.relink()
        stream = await link.commands.attach("mine", since=0, kill=nothing)
        await asyncio.sleep(0.8)  # longer than its patience
        assert not await gone(number)
        await stream.cancel(0)
        assert await gone(number)


async def test_in_the_background_it_needs_no_host(tmp_path: Path) -> None:
    number = mark()
    async with guest(tmp_path, patience=0.1) as running:
        command = await spawn(running.link, "sleep", number)
        link = await running.relink()
        await link.connected(10)
        await asyncio.sleep(0.4)  # longer than its patience
        assert not await gone(number)
        await link.commands.control(command.id, grace=0)
        await eventually(lambda: gone(number))


async def test_the_latest_reader_in_the_foreground_is_the_only_one(tmp_path: Path) -> None:
    async with guest(tmp_path) as running:
        first = await running.exec("sh", "-c", "read -r line; echo $line", stdin=True, id="mine")
        await running.run("true")
        second = await running.link.commands.attach("mine", since=0, kill=nothing)
        with pytest.raises(SandboxLostError, match="another reader"):
            await first.wait()
        await second.send(b"word\n")
        assert (await collect(second)).stdout == b"word\n"


async def test_a_wait_takes_nothing_over(tmp_path: Path) -> None:
    async with guest(tmp_path) as running:
        first = await running.exec("sh", "-c", "read -r line; echo $line; exit 2", stdin=True, id="mine")
        await running.run("true")
        waiting = await running.link.commands.attach("mine", since=None, kill=nothing)
        await first.send(b"word\n")
        assert (await collect(first)).stdout == b"word\n"
        assert (await waiting.wait()).exit_code == 2


async def test_a_flood_of_tiny_pieces_is_kept_small(tmp_path: Path) -> None:
    """Alternating outputs cannot be put together; the guest holds so many pieces, and no more."""
    code = "import os\nfor n in range(300_000): os.write(1 + n % 2, b'x')\nopen('done', 'w')"
    async with guest(tmp_path) as running:
        await running.run("true")
        before = _resident(running)
        await spawn(running.link, "python3", "-c", code)
        await eventually(lambda: asyncio.to_thread((tmp_path / "done").exists), within=60)
        assert _resident(running) - before < 4 * 2**20


def _resident(running: Guest) -> int:
    pages = Path(f"/proc/{running.process.pid}/statm").read_text().split()[1]
    return int(pages) * 4096


# Guests of earlier versions


@asynccontextmanager
async def old_guest(directory: Path, told: list[dict[str, Any]]) -> AsyncIterator[GuestLink]:
    """One of version 1.0: it runs commands, and takes signals as messages. ``told`` gets these."""

    async def serve(stream: Stream) -> None:
        if stream.request["op"] != "exec":
            stream.fail({"code": "ProtocolError", "message": "not known to this guest"})
            return
        await stream.send_message({"started": 7})
        await stream.send(b"out")
        while (item := await stream.receive()) is not None:
            if item[0] == frames.MESSAGE:
                told.append(frames.decode_json(item[1]))
                if "cancel" in told[-1]:
                    break
        stream.close({"exit_code": 143, "signal": 15, "duration": 1.0, "timed_out": False})

    link = new_link(directory, "key")
    await link.listen()
    hello = {"key": "key", "features": ["exec", "kill", "logs", "processes"]}
    connection = await dial_unix(directory / "link.sock", hello, serve)
    try:
        yield link
    finally:
        await connection.close()
        await link.close()


async def test_a_guest_of_an_older_minor_is_served(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []
    async with old_guest(tmp_path, told) as link, asyncio.timeout(5):
        stream = await link.commands.exec(ExecOptions(argv=("true",)), cwd="", env={}, kill=nothing)
        await stream.signal(10)
        await stream.cancel(1.5)
        ran = await stream.wait()
        assert (ran.exit_code, ran.signal) == (143, 15)
        assert told == [{"signal": 10}, {"cancel": 1.5}]


async def test_what_an_older_guest_cannot_do_is_told_with_the_way_out(tmp_path: Path) -> None:
    async with old_guest(tmp_path, []) as link:
        options = ExecOptions(argv=("true",))
        for call in (
            link.commands.spawn(options, cwd="", env={}),
            link.commands.list(),
            link.commands.attach("x", since=0, kill=nothing),
            link.commands.control("x", grace=0),
            link.commands.exec(ExecOptions(argv=("true",), tty=TerminalSize()), cwd="", env={}, kill=nothing),
        ):
            with pytest.raises(NotAvailableError, match="too old"):
                await call


async def test_an_older_guest_gets_no_trees_that_it_would_not_understand(tmp_path: Path) -> None:
    async with old_guest(tmp_path, []) as link:
        volume = LinkVolume(lambda: link.connected(5), sandbox="box")
        with pytest.raises(NotAvailableError, match="too old") as caught:
            await volume.push(tmp_path, "copy")
        assert caught.value.sandbox == "box"
        with pytest.raises(NotAvailableError, match="too old"):
            await volume.pull("tree", tmp_path / "copy")


async def test_with_an_older_guest_a_lost_link_is_a_lost_command(tmp_path: Path) -> None:
    async with old_guest(tmp_path, []) as link:
        stream = await link.commands.exec(ExecOptions(argv=("true",)), cwd="", env={}, kill=nothing)
        await stream.receive()
        connection = await link.connected(1)
        await connection.close()
        with pytest.raises(SandboxLostError):
            await stream.wait()
