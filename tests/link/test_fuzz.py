"""Whatever one side says, the other goes on, or ends the connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.guest.rig import new_link
from tests.link.inprocess import HELLO, InProcessGuest
from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.guest import frames
from yaosb_jupyter.guest.ring import CAPACITY, Ring
from yaosb_jupyter.link.connection import Connection, Stream, dial_unix
from yaosb_jupyter.options import ExecOptions

QUICK = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])

FINITE = st.floats(allow_nan=False, allow_infinity=False)
"""What JSON has; others end the link."""
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
IDS = st.sampled_from(["a", "b", "c"])
NUMBERS = st.integers(-3, 2**70) | FINITE | st.sampled_from([0, 1, 2, 15, 80])
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "exec_id": IDS,
    "exec_ids": st.lists(IDS, max_size=3),
    "argv": st.lists(st.sampled_from(["missing", "word", "", "\0", "\udc80", "x" * 900]), max_size=3),
    "cwd": st.sampled_from(["", "/", "sub", "\0"]),
    "env": st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    "timeout": NUMBERS,
    "stdin": st.booleans(),
    "size": st.tuples(NUMBERS, NUMBERS) | st.lists(NUMBERS, max_size=3),
    "since": NUMBERS | st.none(),
    "token": st.text(max_size=2),
    "signal": NUMBERS,
    "grace": NUMBERS,
    "pattern": st.sampled_from(["", "(", "x", ".*"]),
    "tail": NUMBERS | st.none(),
    "follow": st.booleans(),
    "path": st.sampled_from(["", ".", "..", "a", "a/b", "/etc", "\0", "a" * 300]),
    "source": st.sampled_from(["a", "b", ".."]),
    "target": st.sampled_from(["a", "b", ".."]),
    "service": st.sampled_from(["grpc", "", "../x", "NOT"]),
}


NEEDED = {
    "exec": ("exec_id", "argv", "stdin"),
    "spawn": ("exec_id", "argv", "stdin"),
    "attach": ("exec_id", "since"),
    "control": ("exec_id", "token"),
    "forget": ("exec_ids",),
}


@st.composite
def requests(draw: st.DrawFn, operations: list[str]) -> dict[str, Any]:
    """Well-formed more often than not, so that more than the refusals is reached."""
    op = draw(st.sampled_from([*NEEDED, *NEEDED, *operations, "no such"]))
    needed = NEEDED.get(op, ())
    others = draw(st.lists(st.sampled_from(list(FIELDS)), max_size=3)) if op in NEEDED else list(FIELDS)
    wrong = draw(st.sampled_from([None] * 9 + list(FIELDS)))
    values = {name: draw(json_values if name == wrong else FIELDS[name]) for name in (*needed, *others)}
    return {**values, "op": op}


@st.composite
def conversations(draw: st.DrawFn, operations: list[str]) -> list[bytes]:
    """``lost``: the link breaks, and the next one comes."""
    opened = [2]
    said = []
    for step in draw(
        st.lists(st.sampled_from(["open", "open", "open", "within", "within", "odd", "lost"]), max_size=30)
    ):
        stream = draw(st.sampled_from(opened))
        if step == "open":
            opened.append(opened[-1] + 2)
            said.append(frames.encode_json(frames.OPEN, opened[-1], draw(requests(operations))))
        elif step == "within":
            kinds = [frames.DATA, frames.DATA, frames.EOF, frames.CANCEL, frames.CREDIT, frames.MESSAGE]
            said.append(_within(draw, draw(st.sampled_from(kinds)), stream))
        elif step == "lost":
            opened = [2]
            said.append(b"lost")
        elif draw(st.integers(0, 3)) == 0:
            said.append(
                frames.encode(draw(st.sampled_from(sorted(frames.KINDS))), stream, draw(st.binary(max_size=20)))
            )
    return said


def _within(draw: st.DrawFn, kind: int, stream: int) -> bytes:
    if kind == frames.CREDIT:
        return frames.encode_credit(stream, draw(st.integers(0, 2**32 - 1)))
    if kind == frames.MESSAGE:
        return frames.encode_json(kind, stream, draw(st.dictionaries(st.text(max_size=4), json_values, max_size=2)))
    return frames.encode(kind, stream, draw(st.binary(max_size=9)) if kind == frames.DATA else b"")


@QUICK
@given(data=st.data())
def test_nothing_that_a_host_says_stops_a_guest(tmp_path: Path, data: st.DataObject) -> None:
    guest = InProcessGuest(str(tmp_path))
    try:
        guest.feed(HELLO)
        guest.step()
        for frame in data.draw(conversations(guest.operations)):
            if frame == b"lost" or guest.said() is None:
                guest.host.close()
                guest.connect()
                guest.feed(HELLO)
            else:
                guest.feed(frame)
            guest.step()
        guest.connect()
        guest.feed(HELLO + frames.encode(frames.PING, 0, b"there?"))
        guest.step()
        assert frames.Frame(frames.PONG, 0, b"there?") in (guest.said() or ())
        assert guest.errors == []
    finally:
        guest.close()


RESULT = {"exit_code": 0, "signal": None, "duration": 1.0, "timed_out": False}

hostile_messages = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "started": json_values,
            "received": NUMBERS | json_values,
            "waiting": NUMBERS | json_values,
            "lost": NUMBERS | json_values,
            "background": json_values,
        },
    ),
    st.dictionaries(st.text(max_size=5), json_values, max_size=3),
)
hostile_frames = st.one_of(
    st.builds(lambda content: (frames.MESSAGE, json.dumps(content).encode()), hostile_messages),
    st.tuples(st.sampled_from([frames.DATA, frames.DATA_ERR, frames.MESSAGE]), st.binary(min_size=1, max_size=9)),
    st.tuples(st.just(frames.EOF), st.just(b"")),
    st.builds(lambda count: (frames.CREDIT, count.to_bytes(4, "big")), st.integers(0, 2**32 - 1)),
    st.builds(
        lambda content: (frames.CLOSE, json.dumps(content).encode()),
        st.just({"result": RESULT})
        | st.fixed_dictionaries({"result": st.fixed_dictionaries({}, optional=dict.fromkeys(RESULT, json_values))})
        | st.fixed_dictionaries({"error": st.dictionaries(st.sampled_from(["code", "message"]), json_values)})
        | json_values.map(lambda value: {"result": value}),
    ),
)


@QUICK
@given(sent=st.lists(hostile_frames, max_size=12), breaks=st.integers(0, 3))
async def test_nothing_that_a_guest_says_stops_its_host(
    tmp_path: Path, sent: list[tuple[int, bytes]], breaks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its caller gets a status or an error of ours, in the time that a guest has for its answers."""
    monkeypatch.setattr("yaosb_jupyter.link.commands.LINK_PATIENCE", 0.2)
    link = new_link(tmp_path, "key")
    await link.listen()

    async def serve(stream: Stream) -> None:
        for kind, payload in sent:
            stream._outlet.write(frames.encode(kind, stream.id, payload))
        await asyncio.Event().wait()

    async def come() -> Connection:
        hello = {"key": "key", "features": ["exec", "attach", "control", "forget"], "instance": "one"}
        return await dial_unix(tmp_path / "link.sock", hello, serve)

    connection = await come()
    try:
        async with asyncio.timeout(10):
            stream = await link.commands.exec(ExecOptions(argv=("true",), stdin=True), cwd="", env={}, kill=_nothing)
            outcome = asyncio.create_task(_outcome(stream.wait))
            for _ in range(breaks):
                await stream.send(b"input")
                await connection.close()
                connection = await come()
                await asyncio.sleep(0)
            await connection.close()
            assert await outcome is None or isinstance(await outcome, SandboxError)
            assert stream.offset >= 0
    finally:
        await connection.close()
        await link.close()


async def _nothing() -> None: ...


async def _outcome(wait: Callable[[], Any]) -> BaseException | None:
    try:
        await wait()
    except Exception as error:
        return error
    return None


@given(
    st.lists(st.tuples(st.sampled_from([frames.DATA, frames.DATA_ERR]), st.integers(0, 9000)), max_size=60), st.data()
)
def test_a_ring_gives_back_what_was_put_in(pieces: list[tuple[int, int]], data: st.DataObject) -> None:
    ring = Ring(start=data.draw(st.integers(0, 100)))
    kinds: list[int] = []
    content = bytearray()
    first = ring.start
    for number, (kind, size) in enumerate(pieces):
        piece = bytes([number % 251]) * size
        ring.append(kind, piece)
        content += piece
        kinds += [kind] * size
        if data.draw(st.booleans()):
            ring.release(data.draw(st.integers(0, ring.end + 5)))
        ring.trim()
        assert ring.end == first + len(content)
        assert ring.held <= CAPACITY
    position = ring.start
    while position < ring.end:
        kind, found = ring.read(position, data.draw(st.integers(1, 10_000)))
        assert len(found) > 0
        assert bytes(found) == content[position - first : position - first + len(found)]
        assert set(kinds[position - first : position - first + len(found)]) == {kind}
        position += len(found)
