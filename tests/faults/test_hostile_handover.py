"""What a hostile guest hands over in place of the pipe that its host has asked for."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.box import collect, eventually
from tests.contract.hosts import Host, host_of, hosts
from tests.faults.test_hostile_guest import Possess, honest, possess  # noqa: F401 - fixtures
from yaosb_jupyter.core.commands import bulk

HANDS = """
import array, threading

def held():
    ends.extend(os.pipe())
    return ends[-2:-1]

def endless():
    reading, writing = os.pipe()
    def fill():
        while True:
            os.write(writing, bytes(65536))
    threading.Thread(target=fill, daemon=True).start()
    return [reading]

def on_disk():
    os.mkfifo("/tmp/fifo")
    return [os.open("/tmp/fifo", os.O_RDWR)]

ends = []
KINDS = {
    "a file": lambda: [os.open(sys.argv[0], os.O_RDONLY)],
    "a FIFO on the disk": on_disk,
    "a device": lambda: [os.open("/dev/zero", os.O_RDONLY)],
    "a socket": lambda: [socket.socket(socket.AF_UNIX).detach()],
    "two pipes": lambda: [*held(), *held()],
    "many": lambda: [os.dup(0) for _ in range(200)],
    "nothing": lambda: [],
    "another command's": held,
    "twice": held,
    "a pipe that nobody ends": held,
    "a pipe without end": endless,
}

def hand_over(kind, exec_id):
    shown = {"descriptor": "other" if kind == "another command's" else exec_id, "offset": 0}
    for _ in range(2 if kind == "twice" else 1):
        passing = socket.socket(socket.AF_UNIX)
        passing.connect(config["socket"])
        passing.sendall(frame(HELLO, 0, {"major": 1, "minor": 0, "key": config["key"], **shown}))
        try:
            read(passing)
            borne = array.array("i", KINDS[kind]())
            passing.sendmsg([frame(PING, 0)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, borne)] if borne else [])
            read(passing)
        except OSError:
            pass

def serve(link):
    running = {}
    for stream, request in requests(link):
        if request["op"] == "exec":
            running[request["exec_id"]] = stream, request["argv"][0]
            link.sendall(frame(MESSAGE, stream, {"started": 1}) + frame(DATA, stream, b"before"))
        elif request["op"] == "hand_over":
            told, kind = running[request["exec_id"]]
            hand_over(kind, request["exec_id"])
            link.sendall(frame(CLOSE, stream, {"result": {}}))
            result = {"exit_code": 0, "signal": None, "duration": 0.1, "timed_out": False}
            link.sendall(frame(CLOSE, told, {"result": result}))
        else:
            link.sendall(frame(CLOSE, stream, {"result": {}}))

for_ever(serve)
"""
REFUSED = ("a file", "a FIFO on the disk", "a device", "a socket", "two pipes", "many", "nothing", "another command's")
TAKEN = ("twice", "a pipe that nobody ends", "a pipe without end")


@pytest.fixture(params=hosts("docker", "embedded"))
def host(request: pytest.FixtureRequest, directory: Path) -> Iterator[Host]:
    yield from host_of(request.param, directory)


async def descriptors() -> int:
    return len(await asyncio.to_thread(os.listdir, "/proc/self/fd"))


async def test_whatever_is_handed_over_costs_no_descriptor_and_no_time(
    possess: Possess,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bulk, "BULK", 1)
    box = await possess(HANDS)
    await collect(bulk.BulkStream(await box.stream("nothing")))
    before = await descriptors()
    for kind in REFUSED + TAKEN:
        stream = bulk.BulkStream(await box.stream(kind))
        async with asyncio.timeout(15):
            ran = await collect(stream)
        assert ran.code == 0, kind
        assert ran.stdout[:6] == b"before", kind
        assert (ran.stdout == b"before") == (kind != "a pipe without end"), kind
        assert (stream._pipe is not None) == (kind in TAKEN), kind

        async def closed() -> bool:
            return await descriptors() <= before

        await eventually(closed, what=f"nothing is left open of {kind}")
