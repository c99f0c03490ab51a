"""Guests that do not keep to the rules, and how they get into a sandbox in place of ours."""

from __future__ import annotations

import asyncio
import importlib.util
import marshal
from importlib import resources
from pathlib import Path

from tests.contract.box import Box

_PRELUDE = """
import itertools, json, os, socket, struct, sys, time

HEADER = struct.Struct("!IBI")
HELLO, OPEN, MESSAGE, DATA, DATA_ERR, EOF, CREDIT, CLOSE, CANCEL, PING, PONG, GOAWAY = range(1, 13)

def frame(kind, stream, payload=b""):
    if isinstance(payload, dict):
        payload = json.dumps(payload).encode()
    return HEADER.pack(len(payload), kind, stream) + payload

if sys.argv[1:2] == ["relay"]:
    raise SystemExit(relay(sys.argv[2]))
config = json.loads(sys.stdin.readline())
reception = None

def dial():
    global reception
    if "socket" in config:
        while True:
            link = socket.socket(socket.AF_UNIX)
            try:
                link.connect(config["socket"])
                break
            except OSError:
                time.sleep(0.05)
    else:
        if reception is None:
            reception = socket.socket(socket.AF_UNIX)
            reception.bind(chr(0) + config["reception"])
            reception.listen()
        link = reception.accept()[0]
        link.recv(len(config["knock"]), socket.MSG_WAITALL)
    features = ["exec", "attach", "control", "forget", "kill", "hand_over"]
    link.sendall(frame(HELLO, 0, {"major": 1, "minor": 0, "features": features, "key": config["key"], "instance": "x"}))
    return link

def read(link):
    head = link.recv(HEADER.size, socket.MSG_WAITALL)
    if len(head) < HEADER.size:
        raise ConnectionResetError
    length, kind, stream = HEADER.unpack(head)
    return kind, stream, link.recv(length, socket.MSG_WAITALL) if length else b""

def requests(link):
    while True:
        kind, stream, payload = read(link)
        if kind == PING:
            link.sendall(frame(PONG, 0, payload))
        elif kind == OPEN:
            yield stream, json.loads(payload)

def for_ever(serve):
    while True:
        try:
            serve(dial())
        except OSError:
            pass

"""


def program(behaviour: str) -> bytes:
    """A guest that dials as ours, and then does what ``behaviour`` says."""
    relay = resources.files("yaosb_jupyter.guest").joinpath("relay.py").read_text()
    return (relay + _PRELUDE + behaviour).encode()


def byte_code(source: bytes) -> bytes:
    code = compile(source, "hostile", "exec", dont_inherit=True)
    return importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code)


async def replace_guest(box: Box, behaviour: str, directory: Path) -> None:
    """Before its first start. ``directory`` is all that the test's host has on disk."""
    content = program(behaviour)
    places = [box.spec.directory / "run" / "guest.pyz", *directory.glob("run/**/guest-*.pyc")]
    found = [place for place in places if await asyncio.to_thread(place.exists)]
    if found:
        for place in found:
            await asyncio.to_thread(place.write_bytes, byte_code(content) if place.suffix == ".pyc" else content)
        return
    file = directory / "hostile.pyz"
    await asyncio.to_thread(file.write_bytes, content)
    target = f"{box.runtime_id}:/run/yaosb/guest.pyz"
    copying = await asyncio.create_subprocess_exec("docker", "cp", str(file), target, stderr=asyncio.subprocess.DEVNULL)
    assert await copying.wait() == 0
