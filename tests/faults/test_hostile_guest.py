"""A guest shares its user with hostile code. What it does costs its own sandbox, and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.contract.box import Box, collect, eventually, receive_until
from tests.contract.conftest import MakeBox
from tests.contract.hosts import Host, host_of, hosts
from tests.faults.hostile import replace_guest
from tests.rig.require import require
from yaosb_jupyter.choices import Status
from yaosb_jupyter.errors import SandboxError, SandboxLostError, UnavailableError
from yaosb_jupyter.link import pulse

MIB = 2**20


@pytest.fixture(params=hosts("docker", "docker-relay", "embedded"))
def host(request: pytest.FixtureRequest, directory: Path) -> Iterator[Host]:
    yield from host_of(request.param, directory)


Possess = Callable[[str], Awaitable[Box]]


@pytest.fixture
async def honest(make_box: MakeBox) -> Box:
    """Another sandbox of the same host, started before the hostile one."""
    return await make_box()


@pytest.fixture
async def possess(honest: Box, make_box: MakeBox, directory: Path) -> AsyncIterator[Possess]:
    """A sandbox with a guest of that behaviour; the honest one is as well as before when the test ends."""

    async def make(behaviour: str) -> Box:
        box = await make_box(start=False)
        await replace_guest(box, behaviour, directory)
        return await box.start()

    yield make
    await is_well(honest)


async def is_well(box: Box) -> None:
    async with asyncio.timeout(20):
        for word in ("one", "two", "three"):
            assert (await box.sh(f"echo {word}")).stdout == f"{word}\n".encode()


def memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def ended(box: Box) -> None:
    async def stopped() -> bool:
        return (await box.runtime.inspect(box.runtime_id)).status is Status.STOPPED

    await eventually(stopped, what="its sandbox is killed")


NONSENSE = {
    "text": {"result": {"exit_code": "0", "signal": None, "duration": 0.1, "timed_out": False}},
    "nothing": {"result": {}},
    "no result": {},
    "a list": {"result": [1]},
    "not finite": {"result": {"exit_code": 0, "signal": None, "duration": 1e999, "timed_out": False}},
    "an error of errors": {"error": {"code": {"code": []}, "message": 5}},
    "an unknown error": {"error": {"code": "SystemExit", "message": "x" * 100_000}},
}


@pytest.mark.parametrize("nonsense", NONSENSE)
async def test_a_fake_end_is_judged(nonsense: str, possess: Possess) -> None:
    told = json.dumps(NONSENSE[nonsense])
    box = await possess(f"""
def serve(link):
    for stream, request in requests(link):
        link.sendall(frame(MESSAGE, stream, {{"started": 7}}) + frame(CLOSE, stream, {told!r}.encode()))
for_ever(serve)
""")
    stream = await box.stream("true", timeout=2)
    async with asyncio.timeout(20):
        with pytest.raises(SandboxError) as refused:
            await stream.wait()
    assert len(str(refused.value)) < 2000


ENDLESS = {
    "more than its credit": "payload = b'x' * 65536\nlink.sendall(frame(DATA, stream, payload) * 64)",
    "pings": "link.sendall(frame(PING, 0, b'p') * 1000)",
    "pings, their answers unread": "link.sendall(frame(PING, 0, b'p' * 100_000) * 10)",
    "credit": "link.sendall(frame(CREDIT, stream, (2**32 - 1).to_bytes(4, 'big')) * 1000)",
    "nothing at all": "link.sendall(frame(DATA, stream) * 1000)",
    "frames for no stream": "link.sendall(frame(DATA, 4444, b'x' * 100_000) * 10)",
    "a kind that is none": "link.sendall(frame(77, stream))",
    "a giant": "link.sendall(HEADER.pack(2**32 - 1, DATA, stream) + b'x' * 100_000)",
    "streams of its own": "link.sendall(frame(OPEN, 2 * next(count) + 1, {'op': 'accept', 'service': 'grpc'}))",
    "no JSON": "link.sendall(frame(MESSAGE, stream, b'[' * 100_000))",
    "connections": "link.close()\nlink = dial()",
}


@pytest.mark.parametrize("what", ENDLESS)
async def test_endless_frames_cost_only_its_own_sandbox(what: str, possess: Possess, honest: Box) -> None:
    lines = "\n".join("            " + line for line in ENDLESS[what].splitlines())
    box = await possess(f"""
def serve(link):
    count = itertools.count()
    for stream, request in requests(link):
        while True:
{lines}
for_ever(serve)
""")
    before = memory()
    stream = await box.stream("true")
    began = time.monotonic()
    await is_well(honest)
    assert time.monotonic() - began < 10
    async with asyncio.timeout(30):
        await stream.cancel(0)
    assert memory() - before < 64 * MIB


async def test_endless_output_ends_with_its_timeout(possess: Possess) -> None:
    """It goes on with what is asked for, within its credit, and never ends."""
    box = await possess("""
def serve(link):
    for stream, request in requests(link):
        link.sendall(frame(MESSAGE, stream, {"started": 7}))
        credit = 2**20 - 20
        while True:
            while credit >= 65536:
                link.sendall(frame(DATA, stream, b"y" * 65536))
                credit -= 65536
            kind, number, payload = read(link)
            if kind == CREDIT:
                credit += int.from_bytes(payload, "big")
for_ever(serve)
""")
    stream = await box.stream("true", timeout=0.5)
    with pytest.raises(SandboxLostError):
        async with asyncio.timeout(40):
            await collect(stream)
    await ended(box)


async def test_silence_ends_with_the_timeout_of_a_command(possess: Possess) -> None:
    box = await possess("link = dial()\nwhile True: time.sleep(1000)")
    began = time.monotonic()
    stream = await box.stream("true", timeout=0.5)
    with pytest.raises(SandboxLostError):
        await stream.wait()
    assert time.monotonic() - began < 0.5 + 2 + 5 + 8
    await ended(box)


async def test_silence_ends_with_a_cancel(possess: Possess) -> None:
    box = await possess("link = dial()\nwhile True: time.sleep(1000)")
    stream = await box.stream("true")
    async with asyncio.timeout(20):
        await stream.cancel(0.1)
    await ended(box)


async def test_silence_does_not_keep_a_sandbox_from_its_end(possess: Possess) -> None:
    box = await possess(
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nlink = dial()\nwhile True: time.sleep(1000)"
    )
    began = time.monotonic()
    await box.stop(1)
    assert time.monotonic() - began < 10
    await ended(box)


async def test_one_that_leaves_and_leaves_again_ends_with_the_timeout_of_a_command(
    possess: Possess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yaosb_jupyter.link.exec.MOST_AWAY", 5.0)
    box = await possess("""
link = dial()
for stream, request in requests(link):
    link.sendall(frame(MESSAGE, stream, {"started": 7}))
    link.close()
    break
time.sleep(1000)
""")
    stream = await box.stream("true", timeout=0.5)
    with pytest.raises(SandboxLostError):
        async with asyncio.timeout(60):
            await stream.wait()
    await ended(box)


async def test_one_that_stands_still_loses_its_link_and_gets_it_back(
    make_box: MakeBox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    require("root")
    monkeypatch.setattr(pulse, "EVERY", 0.2)
    monkeypatch.setattr(pulse, "PATIENCE", 0.5)
    box = await make_box()
    stream = await box.stream("sh", "-c", "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two")
    await receive_until(stream, b"one")

    async def dropped() -> bool:
        return any("is silent" in record.message for record in caplog.records)

    number = await guest_on_host(box)
    os.kill(number, signal.SIGSTOP)
    try:
        await eventually(dropped, what="its link is dropped")
    finally:
        os.kill(number, signal.SIGCONT)
    await box.sh("touch go")
    async with asyncio.timeout(20):
        ran = await collect(stream)
    assert (ran.code, ran.stdout) == (0, b"two\n")


async def guest_on_host(box: Box) -> int:
    """The guest's process id on this host: the one that has its program and this sandbox in its command line."""

    def find() -> int:
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            except OSError:
                continue
            if words[1:3] == [b"-I", b"-S"] and words[4:] == [box.spec.uid.encode(), b""]:
                return int(entry.name)
        raise AssertionError("the guest is not to be found")

    return await asyncio.to_thread(find)


async def test_a_signal_of_the_sandbox_does_not_stop_it(make_box: MakeBox) -> None:
    box = await make_box()
    await box.sh("kill -STOP $PPID; kill -STOP 1; kill -KILL $PPID; kill -KILL 1; true")
    assert (await box.sh("echo up", timeout=5)).stdout == b"up\n"


IMPERSONATE = """
import glob, json, os, socket, struct, sys, time
HEADER = struct.Struct("!IBI")
names = [line.split()[-1] for line in open("/proc/net/unix") if " @yaosb-" in line]
paths = [chr(0) + name[1:] for name in names] + glob.glob("/run/**/link.sock", recursive=True)
assert paths
hello = json.dumps({"major": 1, "minor": 0, "features": [], "key": "a" * 43, "instance": "y"}).encode()
kinds = [b"", b"GET / HTTP/1.1\\r\\n\\r\\n", b"f" * 64, HEADER.pack(len(hello), 1, 0) + hello, b"f" * 64 + hello]
answers, held, until = set(), [], time.monotonic() + 3
while time.monotonic() < until:
    for path in paths:
        for kind in kinds:
            one = socket.socket(socket.AF_UNIX)
            one.settimeout(0.05)
            try:
                one.connect(path)
                one.sendall(kind)
                answers.add(one.recv(1000)[4:5])
            except OSError:
                pass
            held.append(one)
    del held[:-500]
# Nobody but the host is told HELLO, the first frame of a link: neither key nor service.
print(sorted(answer for answer in answers if answer == bytes([1])))
"""


async def test_an_impersonator_learns_nothing_and_changes_nothing(make_box: MakeBox, honest: Box) -> None:
    box = await make_box()
    waiting = await box.stream("sh", "-c", "read line; echo $line", stdin=True)
    stream = await box.stream("python3", "-c", IMPERSONATE)
    collecting = asyncio.ensure_future(collect(stream))
    while not collecting.done():
        await is_well(box)
        await is_well(honest)
    ran = await collecting
    assert (ran.code, ran.stdout) == (0, b"[]\n"), ran.stderr
    await waiting.send(b"still there\n")
    await receive_until(waiting, b"still there")


async def test_one_that_never_comes_is_told(
    make_box: MakeBox, directory: Path, monkeypatch: pytest.MonkeyPatch, honest: Box
) -> None:
    monkeypatch.setattr("yaosb_jupyter.tai.runtimes.docker.guest.START_SECONDS", 2.0)
    monkeypatch.setattr("yaosb_jupyter.tai.runtimes.embedded.launch.START_TIMEOUT", 2.0)
    box = await make_box(start=False, cmd=("sleep", "1000"))
    await replace_guest(box, "while True: time.sleep(1000)", directory)
    began = time.monotonic()
    with pytest.raises(UnavailableError):
        await box.start()
    assert time.monotonic() - began < 10
    await is_well(honest)
