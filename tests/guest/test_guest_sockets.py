"""Ports and services through the guest: what it refuses, what the host does not take from it, and its limits."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.contract.box import eventually
from tests.guest.rig import Guest, guest, other_pythons
from tests.rig.require import require
from yaosb_jupyter.choices import Network
from yaosb_jupyter.errors import (
    NotAvailableError,
    PortUnavailableError,
    ProtocolError,
    SandboxLostError,
)
from yaosb_jupyter.guest import frames
from yaosb_jupyter.link import dial as dialling
from yaosb_jupyter.link.connection import Connection, RemoteError, Stream, dial_unix
from yaosb_jupyter.link.door import SocketDoor
from yaosb_jupyter.link.guest import GuestLink
from yaosb_jupyter.link.services import MAX_CARRIED, GuestServices, ServiceHandler
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec
from yaosb_jupyter.tai.runtimes.embedded.checks import check_dial
from yaosb_jupyter.tai.runtimes.embedded.options import Means


async def echo(connection: ByteStream, uid: str) -> None:
    while data := await connection.receive():
        await connection.send(data)


def link_with(running: Guest, services: Mapping[str, ServiceHandler]) -> GuestLink:
    door = SocketDoor(running.directory / "link.sock", sandbox="s")
    return GuestLink(door, running.key, sandbox="s", services=GuestServices(services, "s"))


@asynccontextmanager
async def serving(directory: Path, *args: Any, **config: Any) -> AsyncIterator[tuple[Guest, Path]]:
    """A guest whose link offers `echo` as ``grpc``, and the socket inside."""
    async with guest(directory, *args, temporary=str(directory), **config) as running:
        await running.link.close()
        running.link = link_with(running, {"grpc": echo})
        _, output, _ = await running.run("sh", "-c", "echo $YAO_GRPC_ADDR")
        assert output.startswith(b"unix:///")
        yield running, Path(output.decode().strip().removeprefix("unix://"))


async def say(path: Path, word: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        writer.write(word)
        writer.write_eof()
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()


@asynccontextmanager
async def listening() -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


# Whatever Python there is


@pytest.mark.parametrize("which", [0, -1], ids=["oldest", "newest"])
async def test_ports_and_services_on_the_oldest_and_the_newest_python(which: int, tmp_path: Path) -> None:
    require("other-pythons")
    async with serving(tmp_path, other_pythons()[which]) as (running, path), listening() as port:
        data = b"x" * 3_000_000
        assert await say(path, data) == data
        async with await running.link.dial(port) as connection:
            await connection.send(data)
            await connection.send_eof()
            got = bytearray()
            while piece := await connection.receive():
                got += piece
            assert got == data


# What the guest refuses


@pytest.mark.parametrize(
    "request_",
    [{}, {"port": 0}, {"port": 65536}, {"port": "80"}, {"port": 80, "host": "10.0.0.1"}, {"port": 80, "host": "ab"}],
)
async def test_a_bad_dial_is_refused(request_: dict[str, Any], tmp_path: Path) -> None:
    async with guest(tmp_path) as running:
        with pytest.raises(RemoteError) as caught:
            await running.link.call("dial", request_)
        assert caught.value.code == "InvalidOptionError"


@pytest.mark.parametrize("name", ["", "../x", "GRPC", "a" * 17, None, 7])
async def test_a_bad_name_of_a_service_is_refused(name: Any, tmp_path: Path) -> None:
    async with guest(tmp_path) as running:
        with pytest.raises(RemoteError) as caught:
            await running.link.call("listen", {"service": name})
        assert caught.value.code == "InvalidOptionError"


@pytest.mark.parametrize("denied", [["*"], ["unix", "netlink"]])
async def test_where_commands_have_no_unix_sockets_that_is_told(
    denied: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    confinement = {"sockets": denied, "apart": True}
    async with guest(tmp_path, confinement=confinement, services=["grpc"]) as running:
        await running.link.close()
        running.link = link_with(running, {"grpc": echo})
        with caplog.at_level(logging.WARNING):
            status, output, _ = await running.run("sh", "-c", "echo ${YAO_GRPC_ADDR-none}")
            assert (status.exit_code, output) == (0, b"none\n")
            await running.run("true")
        assert "cannot reach the service grpc" in caplog.text
        assert "cannot open Unix sockets" in caplog.text


@pytest.mark.parametrize("means", Means)
@pytest.mark.parametrize("network", [Network.NONE, Network.BRIDGE])
def test_a_port_that_could_only_be_the_hosts_is_not_dialled(means: Means, network: Network, tmp_path: Path) -> None:
    spec = EnvironmentSpec(
        uid="u", name="n", image="", labels={}, directory=tmp_path, workspace=tmp_path, network=network
    )
    if (means, network) == (Means.LANDLOCK, Network.NONE):
        with pytest.raises(NotAvailableError, match="Landlock"):
            check_dial(spec, means)
    else:
        check_dial(spec, means)


async def test_a_socket_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    async with guest(tmp_path, temporary=str(deep)) as running:
        with pytest.raises(RemoteError, match="too long") as caught:
            await running.link.call("listen", {"service": "grpc"})
        assert caught.value.code == "NotAvailableError"


# Its limits


async def test_without_a_link_a_connection_ends_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as (running, path):
        assert await say(path, b"one") == b"one"
        await running.link.close()

        async def refused() -> bool:
            try:
                return await say(path, b"two") == b""
            except OSError:
                return True

        await eventually(refused, what="the guest has seen the end of its link")
        running.link = link_with(running, {"grpc": echo})
        await running.link.connected(10)
        assert await say(path, b"three") == b"three"


async def test_where_no_descriptor_is_left_connections_wait(tmp_path: Path) -> None:
    async with serving(tmp_path) as (running, path):
        soft, hard = resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE)
        few = 3 + max(int(name.name) for name in Path(f"/proc/{running.process.pid}/fd").iterdir())
        resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE, (few, hard))
        asking = [asyncio.ensure_future(say(path, b"%d" % number)) for number in range(40)]
        holding = [await asyncio.open_unix_connection(str(path)) for _ in range(8)]

        async def exhausted() -> bool:
            try:
                await running.link.call("processes", {})
            except RemoteError as error:
                return error.code == "UnavailableError"
            return False

        await eventually(exhausted, what="calls that need a descriptor are refused, and answered")
        resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE, (soft, hard))
        assert await asyncio.gather(*asking) == [b"%d" % number for number in range(40)]
        for _, writer in holding:
            writer.close()


# A hostile guest


@asynccontextmanager
async def impostor(
    tmp_path: Path, serve: Any = None, services: Mapping[str, ServiceHandler] | None = None
) -> AsyncIterator[tuple[GuestLink, Connection]]:
    """A link and, in the guest's place, a program that says what it likes."""
    given = None if services is None else GuestServices(services, "s")
    link = GuestLink(SocketDoor(tmp_path / "link.sock", sandbox="s"), "key", sandbox="s", services=given)
    await link.listen()
    connection = await dial_unix(tmp_path / "link.sock", {"key": "key", "features": []}, serve)
    try:
        yield link, connection
    finally:
        await connection.close()
        await link.close()


async def test_an_unknown_service_is_refused(tmp_path: Path) -> None:
    async with impostor(tmp_path, services={"grpc": echo}) as (_, connection):
        for request in ({"service": "other"}, {"service": ["grpc"]}, {"service": {"a": 1}}, {}):
            with pytest.raises(RemoteError) as caught:
                await connection.call("accept", request)
            assert caught.value.code == "NotFoundError"
        with pytest.raises(RemoteError) as caught:
            await connection.call("exec", {"service": "grpc", "argv": ["true"]})
        assert caught.value.code == "NotFoundError"


async def test_without_services_nothing_is_accepted(tmp_path: Path) -> None:
    async with impostor(tmp_path) as (_, connection):
        with pytest.raises(RemoteError):
            await connection.call("accept", {"service": "grpc"})


async def test_a_flood_of_accepts_is_bounded(tmp_path: Path) -> None:
    served = 0

    async def count(connection: ByteStream, uid: str) -> None:
        nonlocal served
        served += 1
        await connection.receive()

    async with impostor(tmp_path, services={"grpc": count}) as (_, connection):
        streams = [connection.open("accept", {"service": "grpc"}) for _ in range(MAX_CARRIED + 100)]
        refused = 0
        for stream in streams[MAX_CARRIED:]:
            with pytest.raises(RemoteError) as caught:
                await asyncio.wait_for(stream.result(), 10)
            assert caught.value.code == "LimitExceededError"
            refused += 1
        assert (served, refused) == (MAX_CARRIED, 100)
        await streams[0].send_eof()
        await streams[0].result()
        again = connection.open("accept", {"service": "grpc"})
        await again.send_eof()
        assert await asyncio.wait_for(again.result(), 10) == {}


async def dialled(tmp_path: Path, answer: Any) -> None:
    async with impostor(tmp_path, answer) as (link, _):
        await link.dial(80)


async def test_answers_to_a_dial_that_make_no_sense_are_errors(tmp_path: Path) -> None:
    async def data_first(stream: Stream) -> None:
        await stream.send(b"x")

    async def nothing(stream: Stream) -> None:
        stream.close({"anything": 1})

    async def other_error(stream: Stream) -> None:
        stream.fail({"code": "PermissionDeniedError", "message": "x" * 10_000})

    async def no_json(stream: Stream) -> None:
        stream._outlet.write(frames.encode(frames.MESSAGE, stream.id, b"{]"))
        await asyncio.Event().wait()

    for answer, kind in (
        (data_first, SandboxLostError),
        (nothing, SandboxLostError),
        (other_error, ProtocolError),
        (no_json, SandboxLostError),
    ):
        with pytest.raises(kind) as caught:
            await asyncio.wait_for(dialled(tmp_path, answer), 10)
        assert len(str(caught.value)) < 1000


async def test_a_guest_that_does_not_know_how_to_dial_is_told(tmp_path: Path) -> None:
    async def old(stream: Stream) -> None:
        stream.fail({"code": "ProtocolError", "message": "operation 'dial' is not known to this guest"})

    with pytest.raises(NotAvailableError):
        await dialled(tmp_path, old)


async def test_a_guest_that_is_silent_costs_the_caller_the_patience_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialling, "PATIENCE", 0.2)

    async def silent(stream: Stream) -> None:
        await asyncio.Event().wait()

    with pytest.raises(SandboxLostError):
        await asyncio.wait_for(dialled(tmp_path, silent), 5)


async def test_a_guest_that_never_closes_holds_up_nobody(tmp_path: Path) -> None:
    async def never(stream: Stream) -> None:
        await stream.send_message({"connected": True})
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    async with impostor(tmp_path, never) as (link, _):
        connection = await link.dial(80)
        reading = asyncio.ensure_future(connection.receive())
        sending = asyncio.ensure_future(connection.send(b"x" * 4_000_000))
        await asyncio.sleep(0.05)
        await asyncio.wait_for(connection.aclose(), 5)
        assert await asyncio.wait_for(reading, 5) == b""
        await asyncio.wait_for(sending, 5)


async def test_the_end_of_the_link_is_told_to_whoever_reads(tmp_path: Path) -> None:
    async def connected(stream: Stream) -> None:
        await stream.send_message({"connected": True})
        await asyncio.Event().wait()

    async with impostor(tmp_path, connected) as (link, guest_end):
        connection = await link.dial(80)
        await guest_end.close()
        with pytest.raises(SandboxLostError):
            await asyncio.wait_for(connection.receive(), 5)
        with pytest.raises(SandboxLostError):
            await connection.receive()
        await connection.send(b"dropped")
        await connection.aclose()


async def test_an_error_of_the_port_after_data_is_told(tmp_path: Path) -> None:
    async def breaks(stream: Stream) -> None:
        await stream.send_message({"connected": True})
        await stream.send(b"some")
        stream.fail({"code": "PortUnavailableError", "message": "port 80: the connection broke: x"})

    async with impostor(tmp_path, breaks) as (link, _):
        connection = await link.dial(80)
        assert await connection.receive() == b"some"
        with pytest.raises(PortUnavailableError, match="broke"):
            await connection.receive()
