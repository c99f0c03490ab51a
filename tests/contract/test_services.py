"""Services of the manager, reached from inside through the guest, without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.contract.box import Box, eventually, receive_until
from tests.contract.conftest import MakeBox, MakeSpec, Opened
from tests.contract.hosts import Host, host_of, hosts
from tests.rig.require import require
from yaosb_jupyter.choices import Network
from yaosb_jupyter.errors import SandboxLostError
from yaosb_jupyter.guest.listen import MAX_CARRIED
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.runtimes.base import Capability, RuntimeInfo

MIB = 2**20

CLIENT = """
import json, os, socket, sys, threading, time

def connect(service="GRPC"):
    address = os.environ[f"YAO_{service}_ADDR"]
    assert address.startswith("unix:///"), address
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(20)
    connection.connect(address[len("unix://"):])
    return connection

def rest(connection):
    got = b""
    while data := connection.recv(65536):
        got += data
    return got

def ask(word):
    connection = connect()
    connection.sendall(word)
    connection.shutdown(socket.SHUT_WR)
    return rest(connection)

"""


class Offered:
    """The services of these tests, and what they saw."""

    def __init__(self) -> None:
        self.callers: list[str] = []
        self.now = 0
        self.most = 0
        self.received = 0
        self.release = asyncio.Event()
        self.lost: list[BaseException] = []

    async def grpc(self, connection: ByteStream, uid: str) -> None:
        """Echoes."""
        self.callers.append(uid)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            while data := await connection.receive():
                await connection.send(data)
            await connection.send(b"|end")
        except (SandboxLostError, asyncio.CancelledError) as error:
            self.lost.append(error)
            raise
        finally:
            self.now -= 1

    async def ipc(self, connection: ByteStream, uid: str) -> None:
        """Says hello and its end, and takes what comes."""
        await connection.send(b"hello")
        await connection.send_eof()
        await self.release.wait()
        while data := await connection.receive():
            self.received += len(data)

    async def broken(self, connection: ByteStream, uid: str) -> None:
        raise RuntimeError("a secret of the host")


@pytest.fixture
def offered() -> Offered:
    return Offered()


@pytest.fixture(params=hosts("docker", "docker-relay", "docker-tls", "embedded"))
def host(request: pytest.FixtureRequest, directory: Path, offered: Offered) -> Iterator[Host]:
    """The runtimes that tell `Capability.SERVICES`."""
    if request.param == "embedded":
        require("bubblewrap")
    services = {"grpc": offered.grpc, "ipc": offered.ipc, "broken": offered.broken}
    yield from host_of(request.param, directory, services)


Client = Callable[..., Awaitable[str]]


@pytest.fixture
def client(box: Box) -> Client:
    """Runs a program inside that uses `CLIENT`; what it printed."""
    return lambda code, **options: run(box, code, **options)


async def run(box: Box, code: str, **options: object) -> str:
    ran = await box.python(CLIENT + code, timeout=40, **options)
    assert ran.code == 0, ran.stderr.decode()
    return ran.stdout.decode().strip()


def test_it_is_told_that_services_are_reached(info: RuntimeInfo) -> None:
    assert Capability.SERVICES in info.capabilities


async def test_a_service_is_reached_without_a_network(box: Box, client: Client, offered: Offered) -> None:
    assert box.spec.network is Network.NONE
    assert await client("print(ask(b'ping'))") == "b'ping|end'"
    assert offered.callers == [box.spec.uid]


async def test_the_main_process_is_told_the_addresses_too(make_box: MakeBox) -> None:
    script = 'echo "$YAO_GRPC_ADDR $YAO_IPC_ADDR" > seen; exec sleep 1000'
    box = await make_box(cmd=("sh", "-c", script))

    async def written() -> bool:
        return await box.has("seen") and bool(await box.read("seen"))

    await eventually(written, what="the main process wrote what it sees")
    grpc, ipc = (await box.read("seen")).decode().split()
    assert grpc.startswith("unix:///")
    assert ipc.startswith("unix:///")
    assert (await box.sh('echo "$YAO_GRPC_ADDR"')).stdout.decode().strip() == grpc


async def test_fifty_at_once(client: Client, offered: Offered) -> None:
    code = """
results = {}
def talk(number):
    connection = connect()
    started.wait()
    word = b"%d;" % number * 20000
    threading.Thread(target=lambda: (connection.sendall(word), connection.shutdown(socket.SHUT_WR))).start()
    results[number] = rest(connection) == word + b"|end"
started = threading.Barrier(50)
threads = [threading.Thread(target=talk, args=(number,)) for number in range(50)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(results), all(results.values()))
"""
    assert await client(code) == "50 True"
    assert len(offered.callers) == 50


async def test_the_end_of_the_service_leaves_our_way_open(client: Client, offered: Offered) -> None:
    offered.release.set()
    code = f"""
connection = connect("IPC")
print(rest(connection))
connection.sendall(b"x" * {3 * MIB})
connection.close()
"""
    assert await client(code) == "b'hello'"

    async def arrived() -> bool:
        return offered.received == 3 * MIB

    await eventually(arrived, what="all has arrived")


async def test_x9_a_service_that_does_not_read_makes_its_client_wait(client: Client, offered: Offered) -> None:
    code = """
connection = connect("IPC")
connection.settimeout(0.5)
sent = 0
try:
    while sent < 64 << 20:
        sent += connection.send(b"x" * 65536)
except TimeoutError:
    print("blocked", sent < 8 << 20, ask(b"others go on"))
"""
    assert await client(code) == "blocked True b'others go on|end'"


async def test_a_service_that_fails_closes_its_connection_and_tells_nothing(client: Client, box: Box) -> None:
    assert await client("print(rest(connect('BROKEN')), ask(b'on'))") == "b'' b'on|end'"


async def test_a_client_that_is_killed_ends_its_service(box: Box, offered: Offered) -> None:
    stream = await box.stream("python3", "-c", CLIENT + "c = connect(); c.send(b'x'); print(c.recv(9)); time.sleep(99)")

    async def served() -> bool:
        return offered.now == 1

    await eventually(served, what="it is served")
    await stream.cancel(0)

    async def over() -> bool:
        return offered.now == 0

    await eventually(over, what="its end is seen")


async def test_n12_the_sockets_are_of_this_sandbox_alone(box: Box, make_box: MakeBox) -> None:
    other = await make_box()
    code = """
path = os.environ["YAO_GRPC_ADDR"][len("unix://"):]
print(path, oct(os.stat(os.path.dirname(path)).st_mode & 0o777))
"""
    path, mode = (await run(box, code)).split()
    assert mode == "0o700"
    assert (await other.run("test", "-e", path)).code == 1
    assert path not in (await other.sh("echo $YAO_GRPC_ADDR")).stdout.decode()


async def test_a_flood_of_connections_is_bounded(box: Box, client: Client, offered: Offered) -> None:
    code = f"""
wanted = {MAX_CARRIED} + 60
open_ones = []
def hold():
    connection = connect()
    connection.sendall(b"x")
    open_ones.append(connection)
threads = [threading.Thread(target=hold) for _ in range(wanted)]
[thread.start() for thread in threads]
while len(open_ones) < wanted or not os.path.exists("go"):
    time.sleep(0.01)
for connection in open_ones:
    connection.shutdown(socket.SHUT_WR)
print([rest(connection) for connection in open_ones].count(b"x|end") == wanted)
"""
    running = asyncio.ensure_future(client(code))

    async def full() -> bool:
        return offered.now == MAX_CARRIED

    await eventually(full, what="as many are served as may be at a time")
    await box.write("go", b"")
    assert await running == "True"
    assert offered.most == MAX_CARRIED
    assert len(offered.callers) == MAX_CARRIED + 60


async def test_connections_end_with_the_manager_and_the_next_one_serves(
    opened: Opened, box: Box, offered: Offered, labels: dict[str, str]
) -> None:
    code = """
connection = connect()
connection.sendall(b"one")
print(connection.recv(3), flush=True)
print(rest(connection), flush=True)
while True:
    try:
        if (answer := ask(b"again")):
            break
    except OSError:
        pass
    time.sleep(0.02)
open("answer", "wb").write(answer)
"""
    stream = await box.stream("python3", "-c", CLIENT + code)
    await receive_until(stream, b"b'one'")
    runtime = await opened.again()
    for state in await runtime.list(labels):  # as every manager begins
        await runtime.take_up(state)
    assert len(offered.lost) == 1
    again = Box(runtime=opened.runtime, runtime_id=box.runtime_id, spec=box.spec)

    async def answered() -> bool:
        return await again.has("answer") and await again.read("answer") == b"again|end"

    await eventually(answered, what="the next manager serves the same sandbox")


async def test_nothing_is_there_where_no_service_is_offered(host: Host, directory: Path, make_spec: MakeSpec) -> None:
    (directory / "other").mkdir()
    runtime = type(host)(directory / "other").runtime()
    await runtime.open()
    spec = make_spec()
    box = Box(runtime=runtime, runtime_id=await runtime.create(spec), spec=spec)
    try:
        await box.start()
        seen = await box.sh('env | grep -c "^YAO_"; ls -A /tmp | grep "^yaosb-"')
        assert seen.stdout == b"0\n"
    finally:
        await runtime.remove(box.runtime_id)
        await runtime.close()
