"""Nothing is lost and nothing runs twice, wherever the link is cut."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.box import Ran, collect, eventually, mark, receive_until
from tests.guest.rig import Guest, end, launch
from tests.guest.test_guest_link import living
from tests.link.cutting import CuttingProxy, cut_guest
from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.errors import CommandNotFoundError, SandboxLostError
from yaosb_jupyter.tai.runtimes.base import ExecStream

MIB = 2**20
SCRIPT = """
echo ran >> runs
echo begin
while read -r line; do echo "$line"; echo "$line" >&2; done
echo end
exit 7
"""
LINES = [b"one\n", b"two\n", b"three\n"]


@pytest.fixture
async def cut(tmp_path: Path) -> AsyncIterator[tuple[Guest, CuttingProxy]]:
    async with cut_guest(tmp_path) as found:
        yield found


async def feed(stream: ExecStream, pieces: list[bytes]) -> None:
    for piece in pieces:
        await stream.send(piece)
    await stream.close_stdin()


async def converse(running: Guest) -> Ran:
    stream = await running.exec("sh", "-c", SCRIPT, stdin=True)
    async with asyncio.timeout(20):
        feeding = asyncio.create_task(feed(stream, LINES))
        ran = await collect(stream)
        await feeding
    return ran


def check(ran: Ran, directory: Path) -> None:
    assert (ran.code, ran.status.signal, ran.status.timed_out) == (7, None, False)
    assert ran.stdout == b"begin\none\ntwo\nthree\nend\n"
    assert ran.stderr == b"one\ntwo\nthree\n"
    assert (directory / "runs").read_text() == "ran\n"
    (directory / "runs").unlink()


async def test_a_command_runs_once_and_whole_wherever_the_link_is_cut(
    tmp_path: Path, cut: tuple[Guest, CuttingProxy]
) -> None:
    running, proxy = cut
    check(await converse(running), tmp_path)
    whole = proxy.carried
    assert whole >= 9  # the request, its start, input and its end, output and the result
    for frame in range(whole + 4):
        proxy.cut_after(frame)
        check(await converse(running), tmp_path)
        proxy.cut_after(None)
    assert proxy.cuts >= 8


@pytest.mark.parametrize("frame", [4, 5, 7, 11])
async def test_a_link_that_breaks_again_and_again_costs_nothing_but_time(
    frame: int, cut: tuple[Guest, CuttingProxy]
) -> None:
    running, proxy = cut
    stream = await running.exec("cat", stdin=True)
    proxy.cut_after(frame, again=True)
    for number in range(15):
        await stream.send(b"%d\n" % number)
        assert await stream.receive() == (ExecChannel.STDOUT, b"%d\n" % number)
    await stream.close_stdin()
    assert (await collect(stream)).code == 0
    assert proxy.cuts > 1


async def test_much_output_arrives_whole_over_a_link_that_breaks(cut: tuple[Guest, CuttingProxy]) -> None:
    running, proxy = cut
    proxy.cut_after(6, again=True)  # 13 frames at the least
    code = "import sys\nfor n in range(12 * 4096): sys.stdout.buffer.write(n.to_bytes(4, 'big') * 64)"
    stream = await running.exec("python3", "-c", code)
    ran = await collect(stream)
    assert ran.code == 0
    expected = b"".join(n.to_bytes(4, "big") * 64 for n in range(12 * 4096))
    assert hashlib.sha256(ran.stdout).digest() == hashlib.sha256(expected).digest()
    assert stream.offset == len(expected)
    assert stream.lost == 0
    assert proxy.cuts >= 2


async def test_much_input_arrives_whole_over_a_link_that_breaks(cut: tuple[Guest, CuttingProxy]) -> None:
    running, proxy = cut
    proxy.cut_after(25, again=True)
    stream = await running.exec("sha256sum", stdin=True)
    data = [bytes([n]) * 77_777 for n in range(120)]
    async with asyncio.timeout(30):
        feeding = asyncio.create_task(feed(stream, data))
        ran = await collect(stream)
        await feeding
    assert ran.stdout.split()[0].decode() == hashlib.sha256(b"".join(data)).hexdigest()
    assert proxy.cuts >= 3


async def test_input_that_nobody_reads_yet_is_neither_lost_nor_repeated(cut: tuple[Guest, CuttingProxy]) -> None:
    """Three windows of input, of which the pipe takes little, over as many links."""
    running, proxy = cut
    stream = await running.exec("sh", "-c", "mkfifo fifo; echo ready; read -r go < fifo; sha256sum", stdin=True)
    await receive_until(stream, b"ready\n")
    data = [bytes([n]) * 2**16 for n in range(48)]
    feeding = asyncio.create_task(feed(stream, data))
    for _ in range(3):
        proxy.cut_after(0)
        cuts = proxy.cuts
        await running.run("true")
        assert proxy.cuts == cuts + 1
    await running.run("sh", "-c", "echo go > fifo")
    async with asyncio.timeout(20):
        ran = await collect(stream)
        await feeding
    assert ran.stdout.split()[-2].decode() == hashlib.sha256(b"".join(data)).hexdigest()


async def test_small_pieces_of_both_outputs_do_not_stop_for_want_of_acknowledgement(
    cut: tuple[Guest, CuttingProxy],
) -> None:
    running, _ = cut
    code = "import os\nfor n in range(9000): os.write(1 + n % 2, b'%d\\n' % n)"
    async with asyncio.timeout(30):
        ran = await collect(await running.exec("python3", "-c", code))
    assert ran.stdout == b"".join(b"%d\n" % n for n in range(0, 9000, 2))
    assert ran.stderr == b"".join(b"%d\n" % n for n in range(1, 9000, 2))


async def test_a_command_that_cannot_start_says_so_wherever_the_link_is_cut(cut: tuple[Guest, CuttingProxy]) -> None:
    running, proxy = cut
    for frame in range(3):
        proxy.cut_after(frame)
        with pytest.raises(CommandNotFoundError):
            await running.run("no-such-command")
        proxy.cut_after(None)


async def test_a_signal_comes_once_wherever_the_link_is_cut(cut: tuple[Guest, CuttingProxy]) -> None:
    running, proxy = cut
    script = "trap 'echo signal' USR1; trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.02; done"
    for frame in range(4):
        stream = await running.exec("sh", "-c", script)
        await receive_until(stream, b"ready\n")
        proxy.cut_after(frame)
        await stream.signal(10)
        await receive_until(stream, b"signal\n")
        proxy.cut_after(None)
        await stream.signal(15)
        ran = await collect(stream)
        assert ran.stdout == b"bye\n"


async def test_a_cancel_ends_the_command_wherever_the_link_is_cut(cut: tuple[Guest, CuttingProxy]) -> None:
    running, proxy = cut
    for frame in range(5):
        number = mark()
        stream = await running.exec("sleep", number)
        proxy.cut_after(frame)
        async with asyncio.timeout(10):
            await stream.cancel(0.5)
        proxy.cut_after(None)
        assert not await asyncio.to_thread(living, number)
    assert running.killed == 0


async def test_a_command_goes_on_without_a_link_until_its_output_is_full(
    tmp_path: Path, cut: tuple[Guest, CuttingProxy]
) -> None:
    running, proxy = cut
    code = "import sys\nsys.stdin.read(1)\nfor n in range(400):\n print('x' * 9999); open('at', 'a').write('.')"
    stream = await running.exec("python3", "-u", "-c", code, stdin=True)
    await running.run("true")  # it has begun
    proxy.refusing = True
    sending = asyncio.create_task(stream.send(b"x"))
    proxy.cut_after(3)

    (tmp_path / "at").touch()

    async def has_stopped() -> bool:
        before = len((tmp_path / "at").read_text())
        await asyncio.sleep(0.3)
        return before > 90 and before == len((tmp_path / "at").read_text())

    await eventually(has_stopped, what="it waits, its output full")
    assert len((tmp_path / "at").read_text()) < 200
    proxy.refusing = False
    ran = await collect(stream)
    await sending
    assert ran.stdout == (b"x" * 9999 + b"\n") * 400


async def test_a_guest_that_was_started_anew_ends_what_the_old_one_ran(
    tmp_path: Path, cut: tuple[Guest, CuttingProxy]
) -> None:
    """The new one would know nothing of it, and begin it again."""
    running, proxy = cut
    proxy.refusing = True
    proxy.cut_after(0)
    stream = await running.exec("sh", "-c", "echo ran >> runs")
    waiting = asyncio.create_task(stream.wait())
    await eventually(lambda: asyncio.sleep(0, not running.link.is_up), what="the link is broken")
    running.process.kill()
    another = await launch(tmp_path, running.key, socket=str(tmp_path / "link.sock"))
    try:
        with pytest.raises(SandboxLostError):
            await asyncio.wait_for(waiting, 20)
    finally:
        await end(another)
    assert not (tmp_path / "runs").exists()
