"""Coverage-guided fuzzing of both ends of the link, for those who have `atheris`:

    python -m venv fuzz && fuzz/bin/pip install atheris -e .
    mkdir corpus && PYTHONPATH=. fuzz/bin/python tests/link/fuzz.py corpus -max_total_time=600

The first byte of each input chooses what is fuzzed; how often each was is printed now and then.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import tempfile
from collections import Counter
from typing import Any

import atheris  # type: ignore[import-untyped, unused-ignore]
import msgspec

with atheris.instrument_imports(include=["yaosb_jupyter.guest", "yaosb_jupyter.link"]):
    from tests.link.inprocess import HELLO, InProcessGuest
    from yaosb_jupyter.errors import ProtocolError
    from yaosb_jupyter.guest import frames
    from yaosb_jupyter.link.commands import GuestCommands
    from yaosb_jupyter.link.connection import Connection, Stream
    from yaosb_jupyter.link.door import ComeIn, Door
    from yaosb_jupyter.link.exec import CommandResult, exit_status
    from yaosb_jupyter.link.guest import GuestLink
    from yaosb_jupyter.link.handover import SHOWN, Handover

PING = frames.encode(frames.PING, 0, b"there?")
PONG = frames.Frame(frames.PONG, 0, b"there?")
ODD: list[Any] = [None, 1, -1, 1e308, [], {}, "x", [80, 24], float("inf"), 2**70]
FIELDS = ["size", "grace", "signal", "timeout", "env", "cwd", "tail", "port", "offset", "since", "argv", "exec_id"]

workdir = tempfile.mkdtemp()
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
counts: Counter[str] = Counter()


def fuzz_decoder(fuzzed: Any) -> None:
    """What is cut into frames is those frames, wherever it arrives in pieces."""
    decoder, whole, found = frames.Decoder(), b"", []
    try:
        for _ in range(fuzzed.ConsumeIntInRange(1, 8)):
            piece = fuzzed.ConsumeBytes(fuzzed.ConsumeIntInRange(0, 64))
            whole += piece
            found += list(decoder.feed(piece))
    except frames.FrameError:
        return
    assert whole.startswith(b"".join(frames.encode(*frame) for frame in found))


def fuzz_messages(fuzzed: Any) -> None:
    """What a guest tells is a record of ours, or refused."""
    try:
        told = frames.decode_json(fuzzed.ConsumeBytes(500))
    except frames.FrameError:
        return
    try:
        exit_status(msgspec.convert(told, CommandResult))
    except msgspec.ValidationError:
        pass
    try:
        GuestCommands(None, "s")._info(told)  # type: ignore[arg-type]
    except ProtocolError:
        pass


def fuzz_guest(fuzzed: Any) -> None:
    """After whatever its host said, a guest takes the next link, and nothing went wrong inside."""
    guest = InProcessGuest(workdir)
    try:
        guest.feed(HELLO)
        stream = 0
        for _ in range(fuzzed.ConsumeIntInRange(0, 8)):
            stream += 2
            guest.feed(_said(fuzzed, stream, guest.operations))
            if fuzzed.ConsumeIntInRange(0, 9) == 0:
                guest.host.close()
                guest.connect()
                guest.feed(HELLO)
                stream = 0
        guest.step()
        guest.connect()
        guest.feed(HELLO + PING)
        guest.step()
        assert PONG in (guest.said() or ())
        if guest.errors:
            raise guest.errors[0]
    finally:
        guest.close()


def _said(fuzzed: Any, stream: int, operations: list[str]) -> bytes:
    choice = fuzzed.ConsumeIntInRange(0, 9)
    if choice <= 4:
        content = {
            "op": operations[fuzzed.ConsumeIntInRange(0, len(operations) - 1)],
            "exec_id": "abc"[fuzzed.ConsumeIntInRange(0, 2)],
            "argv": [fuzzed.ConsumeUnicode(4) or "word"],
            "token": fuzzed.ConsumeUnicode(1),
            "exec_ids": ["a", "b"],
            "since": fuzzed.ConsumeInt(2),
            "stdin": fuzzed.ConsumeBool(),
            "names": [fuzzed.ConsumeUnicode(5)],
            "service": "grpc",
            "pattern": fuzzed.ConsumeUnicode(3),
        }
        if fuzzed.ConsumeBool():
            content[FIELDS[fuzzed.ConsumeIntInRange(0, len(FIELDS) - 1)]] = ODD[
                fuzzed.ConsumeIntInRange(0, len(ODD) - 1)
            ]
        return frames.encode_json(frames.OPEN, stream, content)
    earlier = 2 * fuzzed.ConsumeIntInRange(1, 4)
    match choice:
        case 5:
            return frames.encode_credit(earlier, fuzzed.ConsumeIntInRange(0, 2**32 - 1))
        case 6:
            return frames.encode(frames.DATA, earlier, fuzzed.ConsumeBytes(12))
        case 7:
            return frames.encode([frames.EOF, frames.CANCEL][fuzzed.ConsumeIntInRange(0, 1)], earlier)
        case 8:
            return frames.encode_json(frames.MESSAGE, earlier, {"x": 1})
    return frames.encode(fuzzed.ConsumeIntInRange(0, 14), fuzzed.ConsumeIntInRange(0, 9), fuzzed.ConsumeBytes(20))


class Nowhere(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closing = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closing

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = True


class Nothing(Door):
    """Nobody comes by it but whom the fuzzer lets in."""

    @property
    def is_open(self) -> bool:
        return True

    async def open(self, come_in: ComeIn, *, unless_served: bool = False) -> None: ...

    async def close(self) -> None: ...


def fuzz_hello(fuzzed: Any) -> None:
    """Whatever a HELLO holds, it becomes the link, hands something over, or is refused; the link answers afterwards."""

    async def run() -> None:
        link = GuestLink(Nothing(), "key", sandbox="s")
        hello: dict[str, Any] = {"major": frames.MAJOR, "key": "key", "instance": "one"}
        for name in ("major", "minor", "key", "features", "instance", SHOWN, "offset"):
            match fuzzed.ConsumeIntInRange(0, 5):
                case 0:
                    hello[name] = ODD[fuzzed.ConsumeIntInRange(0, len(ODD) - 1)]
                case 1:
                    hello[name] = fuzzed.ConsumeUnicode(4)
                case 2:
                    hello[name] = fuzzed.ConsumeInt(9)
        hello.update({SHOWN: "a", "offset": fuzzed.ConsumeInt(9)} if fuzzed.ConsumeBool() else {})
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with link.commands.handovers.expected(Handover("a"), lambda: True), theirs:
            theirs.sendall(frames.encode_json(frames.HELLO, 0, hello) + fuzzed.ConsumeBytes(40))
            await loop.connect_accepted_socket(link._protocol, ours)
            for _ in range(4):
                await asyncio.sleep(0)
        transport, protocol = Nowhere(), link._protocol()
        assert isinstance(protocol, Connection)
        protocol.connection_made(transport)
        protocol.data_received(frames.encode_json(frames.HELLO, 0, {"major": frames.MAJOR, "key": "key"}) + PING)
        assert PONG in frames.Decoder().feed(transport.written)
        protocol.connection_lost(None)
        await link.close()

    loop.run_until_complete(run())


def fuzz_host(fuzzed: Any) -> None:
    """After whatever a guest said, a host has ended the connection or answers."""

    async def serve(stream: Stream) -> None:
        await stream.receive()

    async def run() -> None:
        connection = Connection(dialled=False, hello={}, handler=serve)
        transport = Nowhere()
        connection.connection_made(transport)
        connection.data_received(HELLO)
        connection.open("exec")
        for _ in range(fuzzed.ConsumeIntInRange(0, 8)):
            if not transport.closing:
                connection.data_received(_answered(fuzzed))
        if not transport.closing:
            connection.data_received(fuzzed.ConsumeBytes(500))
        await asyncio.sleep(0)
        if not transport.closing:
            transport.written, connection._decoder = b"", frames.Decoder()
            connection.data_received(PING)
            assert PONG in frames.Decoder().feed(transport.written)
        connection.connection_lost(None)
        await asyncio.sleep(0)

    loop.run_until_complete(run())


def _answered(fuzzed: Any) -> bytes:
    """A frame as a guest might send it, of a stream that is there more often than not."""
    stream = fuzzed.ConsumeIntInRange(0, 5)
    match fuzzed.ConsumeIntInRange(0, 6):
        case 0:
            return frames.encode_json(frames.OPEN, stream, {"op": "accept", "service": "grpc"})
        case 1:
            return frames.encode_credit(stream, fuzzed.ConsumeIntInRange(0, 2**32 - 1))
        case 2:
            return frames.encode_json(
                frames.CLOSE, stream, {["result", "error", "x"][fuzzed.ConsumeIntInRange(0, 2)]: {}}
            )
        case 3:
            return frames.encode_json(frames.MESSAGE, stream, {"started": 1})
        case 4:
            return frames.encode(fuzzed.ConsumeIntInRange(0, 14), stream)
    return frames.encode(frames.DATA, stream, fuzzed.ConsumeBytes(12))


TARGETS = [fuzz_decoder, fuzz_messages, fuzz_guest, fuzz_host, fuzz_hello]


def fuzz(data: bytes) -> None:
    if data:
        target = TARGETS[data[0] % len(TARGETS)]
        counts[target.__name__] += 1
        if counts.total() % 50_000 == 0:
            print(dict(counts), file=sys.stderr)
        target(atheris.FuzzedDataProvider(data[1:]))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    atheris.Setup(sys.argv, fuzz)
    atheris.Fuzz()
