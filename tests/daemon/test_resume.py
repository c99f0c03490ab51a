"""Commands of clients whose connections break, and of daemons that are killed."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.daemon.conftest import Connect, Station, configure, is_alive, pid_of_command, wait_until
from tests.link.cutting import CuttingProxy
from tests.manager.conftest import Managers
from tests.manager.rigs import MemoryRig
from tests.manager.waiting import until
from yaosb_jupyter.core.controller import Controller
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.core.service import Caller
from yaosb_jupyter.daemon.client import RemoteService
from yaosb_jupyter.daemon.control import Control
from yaosb_jupyter.daemon.line import Line
from yaosb_jupyter.daemon.place import Place, make_secret
from yaosb_jupyter.daemon.server import Server
from yaosb_jupyter.errors import InvalidOptionError, NotAvailableError, NotFoundError, SandboxLostError
from yaosb_jupyter.link.connection import dial_unix
from yaosb_jupyter.options import CreateOptions
from yaosb_jupyter.types import Exit, Output

SCRIPT = """
echo ran >> runs
echo begin
while read -r line; do echo "$line"; echo "$line" >&2; done
echo end
exit 7
"""


@dataclass
class Cut:
    """A manager, all of whose connections go through a proxy that can cut them."""

    manager: AsyncManager
    proxy: CuttingProxy


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[MemoryRig]:
    rig = MemoryRig(tmp_path)
    yield rig
    rig.close()


@pytest.fixture
async def cut(rig: MemoryRig) -> AsyncIterator[Cut]:
    settings = Managers(rig).settings()
    controller = await Controller.open(settings, opener=rig.opener)
    service = controller.for_caller(Caller(owner=settings.owner, admin=True))
    place = Place.of(settings)
    secret = await asyncio.to_thread(make_secret, place)
    server = Server(place.socket, secret, lambda: service, Control())
    await server.open()
    proxy = CuttingProxy(Path(tempfile.mkdtemp(prefix="yaosb-")) / "proxy", place.socket)
    await proxy.open()
    manager = AsyncManager(RemoteService(Line(lambda: dial_unix(proxy.path, {"secret": secret})), CreateOptions()))
    yield Cut(manager, proxy)
    await manager.close()
    await proxy.close()
    await server.close("the test ends")
    await controller.close()


@pytest.fixture
async def sandbox(cut: Cut) -> AsyncSandbox:
    return await cut.manager.create("lab")


# The connection breaks


async def converse(sandbox: AsyncSandbox, cut: Cut) -> None:
    async def lines() -> AsyncIterator[bytes]:
        for line in (b"one\n", b"two\n", b"three\n"):
            yield line

    async with asyncio.timeout(20):
        result = await sandbox.exec(SCRIPT, stdin=lines())
    cut.proxy.cut_after(None)
    assert (result.exit_code, result.stdout) == (7, "begin\none\ntwo\nthree\nend\n")
    assert result.stderr == "one\ntwo\nthree\n"
    assert await sandbox.files.read_text("runs") == "ran\n"
    await sandbox.files.remove("runs")


async def test_a_command_runs_once_and_whole_wherever_the_connection_is_cut(cut: Cut, sandbox: AsyncSandbox) -> None:
    await converse(sandbox, cut)
    for frame in range(24):
        cut.proxy.cut_after(frame, only_to="exec")
        await converse(sandbox, cut)
    assert cut.proxy.cuts >= 8


async def test_much_output_arrives_whole_over_connections_that_break(cut: Cut, sandbox: AsyncSandbox) -> None:
    cut.proxy.cut_after(60, again=True)
    program = "import sys\nfor n in range(12 * 4096): sys.stdout.buffer.write(n.to_bytes(4, 'big') * 64)"
    expected = hashlib.sha256(b"".join(n.to_bytes(4, "big") * 64 for n in range(12 * 4096)))
    received = hashlib.sha256()
    async with asyncio.timeout(30), sandbox.stream(["python3", "-c", program], encoding=None) as stream:
        async for event in stream:
            if isinstance(event, Output):
                received.update(event.data)
        assert stream.offset == 12 * 2**20
    assert received.digest() == expected.digest()
    assert cut.proxy.cuts >= 2


async def test_much_input_arrives_whole_over_connections_that_break(cut: Cut, sandbox: AsyncSandbox) -> None:
    data = b"".join(bytes([n]) * 77_777 for n in range(100))
    cut.proxy.cut_after(12, again=True)
    async with asyncio.timeout(30):
        result = await sandbox.exec("sha256sum", stdin=data)
    cut.proxy.cut_after(None)
    assert result.stdout.split()[0] == hashlib.sha256(data).hexdigest()
    assert cut.proxy.cuts >= 1


async def test_a_cancel_and_a_signal_arrive_wherever_the_connection_is_cut(cut: Cut, sandbox: AsyncSandbox) -> None:
    script = (
        "import os, signal, time\nsignal.signal(10, lambda *_: os.write(1, b'signal\\n'))\nprint('ready', flush=True)\n"
        "while True: time.sleep(60)"
    )
    for frame in range(4):
        async with asyncio.timeout(20), sandbox.stream(["python3", "-c", script]) as stream:
            events = aiter(stream)
            assert await anext(events) == Output(channel="stdout", data="ready\n")  # type: ignore[arg-type]
            cut.proxy.cut_after(frame)
            await stream.signal(10)
            assert await anext(events) == Output(channel="stdout", data="signal\n")  # type: ignore[arg-type]
            cut.proxy.cut_after(frame)
            await stream.cancel(0.1)
            rest = [event async for event in events]
            assert isinstance(rest[-1], Exit)
            assert len(rest) == 1
            cut.proxy.cut_after(None)


async def test_a_command_is_held_for_its_client_and_then_ended(
    cut: Cut, sandbox: AsyncSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAULTS M6, M13: held, it is in use; the client does not come back."""
    monkeypatch.setattr("yaosb_jupyter.daemon.held.HOLD", 0.5)
    async with sandbox.stream("echo $$ > pid; echo ready; sleep 60") as stream:
        await anext(aiter(stream))
        pid = int(await sandbox.files.read_text("pid"))
        cut.proxy.refusing = True
        cut.proxy.cut()
        await asyncio.to_thread(wait_until, lambda: not is_alive(pid))
        cut.proxy.refusing = False
        assert (await stream.wait()).exit_code in (143, 137)


# The daemon is killed


@pytest.fixture
def on_embedded(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(station, monkeypatch, "embedded")


@pytest.mark.embedded
async def test_a_stream_goes_on_with_the_next_daemon(station: Station, on_embedded: None, connect: Connect) -> None:
    """Not one byte is lost or told twice, whatever the killed daemon had taken and not passed on."""
    manager = await connect()
    sandbox = await manager.create("lab")
    program = (
        "import sys\nfor n in range(48 * 4096): sys.stdout.buffer.write(n.to_bytes(4, 'big') * 64)\n"
        "sys.stdout.flush(); sys.exit(int(sys.stdin.readline()))"
    )
    total = 48 * 2**20
    expected = hashlib.sha256(b"".join(n.to_bytes(4, "big") * 64 for n in range(48 * 4096)))
    received = hashlib.sha256()
    count = kills = 0
    async with asyncio.timeout(60), sandbox.stream(["python3", "-c", program], encoding=None, stdin=True) as stream:
        async for event in stream:
            if isinstance(event, Exit):
                break
            received.update(event.data)
            count += len(event.data)
            if count > (kills + 1) * total / 3 and kills < 2:
                kills += 1
                await asyncio.to_thread(station.kill)
            if count == total:
                await stream.send(b"9\n")
        assert isinstance(event, Exit)
        assert event.status.exit_code == 9
        assert stream.offset == total
    assert (count, kills) == (total, 2)
    assert received.digest() == expected.digest()
    await manager.remove("lab")


@pytest.mark.embedded
async def test_an_exec_returns_its_result_from_the_next_daemon(
    station: Station, on_embedded: None, connect: Connect
) -> None:
    manager = await connect()
    sandbox = await manager.create("lab")
    running = asyncio.create_task(
        sandbox.exec("echo ran >> runs; echo $$ > pid; echo out; sleep 1.5; echo end; exit 4")
    )
    await pid_of_command(manager)
    await asyncio.to_thread(station.kill)
    result = await asyncio.wait_for(running, 30)
    assert (result.exit_code, result.stdout) == (4, "out\nend\n")
    assert await sandbox.files.read_text("runs") == "ran\n"
    await manager.remove("lab")


@pytest.mark.embedded
async def test_a_cancel_after_the_daemon_was_killed_ends_the_command(
    station: Station, on_embedded: None, connect: Connect
) -> None:
    manager = await connect()
    sandbox = await manager.create("lab")
    running = asyncio.create_task(sandbox.exec("echo $$ > pid; exec sleep 600"))
    await pid_of_command(manager)
    await asyncio.to_thread(station.kill)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    async def ended() -> bool:
        return not [one for one in await sandbox.list_commands() if one.argv[-1].endswith("sleep 600")]

    await until(ended, within=20)
    await manager.remove("lab")


# In the background


@pytest.mark.embedded
async def test_a_command_in_the_background_outlives_client_and_daemon(
    station: Station, on_embedded: None, connect: Connect
) -> None:
    first = await connect()
    sandbox = await first.create("lab")
    command = await sandbox.spawn("echo one; while [ ! -e go ]; do sleep 0.05; done; echo two; exit 3")
    await first.close()
    await asyncio.to_thread(station.kill)
    second = await connect()
    sandbox = await second.get("lab")
    assert [one.id for one in await sandbox.list_commands()] == [command.id]
    again = sandbox.command(command.id)
    assert (await again.info()).exit is None
    async with again.attach() as stream:
        events = aiter(stream)
        assert await anext(events) == Output(channel="stdout", data="one\n")  # type: ignore[arg-type]
        position = stream.offset
    assert (await again.info()).exit is None  # left, it goes on
    waiting = asyncio.create_task(again.wait())
    await sandbox.files.write("go", "")
    assert (await asyncio.wait_for(waiting, 10)).exit_code == 3
    async with again.attach(position) as stream:
        rest = [event async for event in stream]
    assert rest[0] == Output(channel="stdout", data="two\n")  # type: ignore[arg-type]
    assert isinstance(rest[1], Exit)
    await second.remove("lab")


@pytest.mark.embedded
async def test_following_goes_on_with_the_next_daemon(station: Station, on_embedded: None, connect: Connect) -> None:
    manager = await connect()
    sandbox = await manager.create("lab")
    command = await sandbox.spawn("echo one; read -r word; echo $word; exit 3", stdin=True)
    async with command.attach() as stream:
        events = aiter(stream)
        await anext(events)
        await asyncio.to_thread(station.kill)
        await stream.send("two\n")
        assert await anext(events) == Output(channel="stdout", data="two\n")  # type: ignore[arg-type]
        assert (await stream.wait()).exit_code == 3
    await manager.remove("lab")


@pytest.mark.embedded
async def test_neither_running_nor_following_in_the_background_is_use(
    station: Station, on_embedded: None, connect: Connect
) -> None:
    """It is for heartbeats to say that something goes on inside."""
    manager = await connect()
    sandbox = await manager.create("lab", idle_timeout=1)
    command = await sandbox.spawn("while :; do echo x; sleep 0.1; done")

    async def follow() -> None:
        async with command.attach() as stream:
            async for _ in stream:
                pass

    with pytest.raises(SandboxLostError, match="idle"):
        await asyncio.wait_for(follow(), 20)


async def test_what_the_runtime_cannot_do_is_told(manager: AsyncManager) -> None:
    sandbox = await manager.create("lab")
    with pytest.raises(NotAvailableError):
        await sandbox.spawn("true")
    with pytest.raises(NotAvailableError):
        await sandbox.terminal().wait()
    shot = await manager.create("shot", lifecycle="one-shot")
    with pytest.raises(InvalidOptionError, match="one-shot"):
        await shot.spawn("true")


@pytest.mark.embedded
async def test_a_command_that_is_not_known_is_told(station: Station, on_embedded: None, connect: Connect) -> None:
    manager = await connect()
    sandbox = await manager.create("lab")
    unknown = sandbox.command("nothing")
    for call in (unknown.info, unknown.wait, unknown.kill, lambda: unknown.signal(15)):
        with pytest.raises(NotFoundError):
            await call()
    with pytest.raises(NotFoundError):
        await unknown.attach().wait()
    await manager.remove("lab")
