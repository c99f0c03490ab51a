"""Descriptors that the daemon hands to its clients."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from tests.manager.waiting import until
from yaosb_jupyter.core.service import Service
from yaosb_jupyter.daemon import offers
from yaosb_jupyter.daemon.control import Control
from yaosb_jupyter.daemon.offers import Peer
from yaosb_jupyter.daemon.server import Server
from yaosb_jupyter.errors import AuthError, ProtocolError, UnavailableError
from yaosb_jupyter.guest import frames
from yaosb_jupyter.link.connection import Connection, dial_unix
from yaosb_jupyter.link.passing import TOKEN, claim, passes_descriptors

ME = Peer(os.getpid(), os.geteuid())


class Served:
    """A server in this process, a client's connection to it, and a file to be handed over."""

    def __init__(self, path: Path, control: Control, connection: Connection, file: int) -> None:
        self.path = path
        self.control = control
        self.connection = connection
        self.file = file

    def hello(self, token: Any, secret: str = "right") -> bytes:
        return frames.encode_json(frames.HELLO, 0, {"major": frames.MAJOR, "secret": secret, TOKEN: token})


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    control = Control()
    server = Server(tmp_path / "s", "right", lambda: cast(Service, None), control)
    await server.open()
    connection = await dial_unix(tmp_path / "s", {"secret": "right"})
    (tmp_path / "file").write_bytes(b"content")
    file = os.open(tmp_path / "file", os.O_RDONLY)
    yield Served(tmp_path / "s", control, connection, file)
    os.close(file)
    await connection.close()
    await server.close("the test ends")


async def test_a_descriptor_is_handed_over_once(served: Served) -> None:
    assert passes_descriptors(served.connection)
    with served.control.offers.offer(served.file, ME) as offer:
        claimed = await claim(served.connection, offer.token)
        await asyncio.wait_for(offer.taken(), 5)
        with pytest.raises(AuthError, match="no descriptor"):
            await claim(served.connection, offer.token)
    assert claimed != served.file
    assert not os.get_inheritable(claimed)
    assert os.pread(claimed, 100, 0) == b"content"
    os.close(claimed)


async def test_who_claims_is_no_client(served: Served) -> None:
    with served.control.offers.offer(served.file, ME) as offer:
        os.close(await claim(served.connection, offer.token))
    assert len(served.control.connections) == 1


@pytest.mark.parametrize("client", [Peer(ME.pid + 1, ME.uid), Peer(ME.pid, 12345), Peer(0, None)])
async def test_a_descriptor_is_for_the_process_that_asked(served: Served, client: Peer) -> None:
    with served.control.offers.offer(served.file, client) as offer:
        with pytest.raises(AuthError, match="no descriptor"):
            await claim(served.connection, offer.token)
        assert served.control.offers.take(offer.token, client) == served.file


@pytest.mark.parametrize("token", ["", "x" * 43, None, 7, ["x"]])
async def test_a_token_cannot_be_made_up(served: Served, token: Any) -> None:
    with served.control.offers.offer(served.file, ME), pytest.raises(AuthError, match="no descriptor"):
        await claim(served.connection, token)


async def test_a_token_is_nothing_without_the_secret(served: Served) -> None:
    with served.control.offers.offer(served.file, ME) as offer:
        reader, writer = await asyncio.open_unix_connection(str(served.path))
        writer.write(served.hello(offer.token, secret="wrong"))
        (answer,) = frames.Decoder().feed(await asyncio.wait_for(reader.read(), 5))
        writer.close()
        assert answer.kind == frames.GOAWAY
        os.close(await claim(served.connection, offer.token))


async def test_an_offer_ends_with_whoever_made_it(served: Served) -> None:
    with served.control.offers.offer(served.file, ME) as offer:
        pass
    with pytest.raises(AuthError, match="no descriptor"):
        await claim(served.connection, offer.token)


async def test_an_offer_does_not_wait_long(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "PATIENCE", 0.05)
    with served.control.offers.offer(served.file, ME) as offer:
        with pytest.raises(AuthError, match="not claimed in time"):
            await offer.taken()
        with pytest.raises(AuthError, match="no descriptor"):
            await claim(served.connection, offer.token)


async def test_nothing_is_left_of_clients_that_go_away(served: Served) -> None:
    async def one(how: int) -> None:
        with served.control.offers.offer(served.file, ME) as offer:
            if how == 0:
                os.close(await claim(served.connection, offer.token))
            elif how == 1:  # asks, and ends before the answer
                with socket.socket(socket.AF_UNIX) as gone:
                    gone.connect(str(served.path))
                    gone.sendall(served.hello(offer.token))
                await offer.taken()
            elif how == 2:  # ends within its question
                with socket.socket(socket.AF_UNIX) as gone:
                    gone.connect(str(served.path))
                    gone.sendall(served.hello(offer.token)[:20])
            else:  # is cancelled somewhere
                claiming = asyncio.ensure_future(claim(served.connection, offer.token))
                await asyncio.sleep(0)
                claiming.cancel()
                await asyncio.wait([claiming])

    await one(0)
    before = _open_descriptors()
    for turn in range(200):
        await one(turn % 4)
    await until(_given(lambda: _open_descriptors() == before))


def _open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _given(condition: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def ask_it() -> bool:
        return condition()

    return ask_it


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (frames.encode_json(frames.HELLO, 0, {"major": 1}), UnavailableError),
        (frames.encode_json(frames.GOAWAY, 0, {"code": "AuthError", "reason": "no"}), AuthError),
        (frames.encode_json(frames.GOAWAY, 0, {"reason": "no"}), ConnectionError),
        (frames.encode(frames.PING, 0), ProtocolError),
        (b"what is this" * 10, ConnectionError),
        (b"", ConnectionError),
    ],
)
async def test_an_answer_without_a_descriptor_is_an_error(
    tmp_path: Path, answer: bytes, error: type[Exception]
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello = frames.decode_json((await reader.readuntil(b"}"))[frames.HEADER_SIZE :])
        writer.write(answer if TOKEN in hello else frames.encode_json(frames.HELLO, 0, {"major": frames.MAJOR}))
        if TOKEN not in hello:
            await reader.read()
        writer.close()

    async with await asyncio.start_unix_server(serve, tmp_path / "other"):
        connection = await dial_unix(tmp_path / "other", {})
        before = _open_descriptors()
        with pytest.raises(error):
            await claim(connection, "token")
        await until(_given(lambda: _open_descriptors() == before))
        await connection.close()


async def test_who_does_not_answer_is_given_up(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yaosb_jupyter.link.passing._PATIENCE", 0.05)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent"))
        silent.listen()
        monkeypatch.setattr(served.connection, "extra_info", lambda _: str(tmp_path / "silent"))
        with pytest.raises(UnavailableError, match="in time"):
            await claim(served.connection, "token")
        monkeypatch.undo()
