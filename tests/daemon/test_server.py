"""Who is let in, and what the server makes of requests."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from tests.daemon.conftest import Station
from tests.manager.waiting import until
from tests.rig.require import require
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.service import Progress, Service
from yaosb_jupyter.daemon import requests as ask
from yaosb_jupyter.daemon.client import RemoteService
from yaosb_jupyter.daemon.control import Control
from yaosb_jupyter.daemon.line import Line
from yaosb_jupyter.daemon.operations import TABLE
from yaosb_jupyter.daemon.place import make_secret, read_secret
from yaosb_jupyter.daemon.server import Server
from yaosb_jupyter.errors import AuthError, InvalidOptionError, ProtocolError, UnavailableError
from yaosb_jupyter.link.connection import Connection, RemoteError, dial_unix
from yaosb_jupyter.options import CreateOptions
from yaosb_jupyter.types import PullProgress


class FakeService:
    """The few calls that these tests need."""

    def __init__(self) -> None:
        self.pulling = asyncio.Event()
        self.go_on = asyncio.Event()

    async def pull_image(self, image: str, pool: str = "", progress: Progress | None = None) -> None:
        assert progress is not None
        for step in range(int(image)):
            progress(PullProgress(layer=f"layer{step % 3}", status="downloading", current=step, total=int(image)))
        self.pulling.set()
        await self.go_on.wait()

    async def image_exists(self, image: str, pool: str = "") -> bool:
        raise ZeroDivisionError("a bug")


class Served:
    def __init__(self, path: Path, service: FakeService, control: Control) -> None:
        self.path = path
        self.service = service
        self.control = control

    async def dial(self, **hello: Any) -> Connection:
        return await dial_unix(self.path, {"secret": "right"} | hello)

    def client(self) -> RemoteService:
        return RemoteService(Line(self.dial), CreateOptions())


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    service, control = FakeService(), Control()
    server = Server(tmp_path / "s", "right", lambda: cast(Service, service), control)
    await server.open()
    yield Served(tmp_path / "s", service, control)
    await server.close("the test ends")


# Who is let in


@pytest.mark.parametrize("secret", ["wrong", "", None, 7, "rïght", ["right"]])
async def test_a_wrong_secret_is_refused(served: Served, secret: Any) -> None:
    with pytest.raises(AuthError, match="secret"):
        await served.dial(secret=secret)
    assert not served.control.connections


async def test_the_daemon_refuses_a_wrong_secret(station: Station, manager: AsyncManager) -> None:
    for secret in ("", "wrong"):
        with pytest.raises(AuthError, match="secret"):
            await dial_unix(station.place.socket, {"secret": secret})


def test_socket_and_secret_are_for_their_owner_only(station: Station) -> None:
    with_daemon = station.script("import yaosb_jupyter; yaosb_jupyter.connect()")
    _, err = with_daemon.communicate(timeout=30)
    assert with_daemon.returncode == 0, err
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (station.place.socket, station.place.secret)}
    assert set(modes.values()) == {0o600}
    for directory in (station.place.runtime_dir, station.place.data_dir):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(station.place.log.stat().st_mode) == 0o600


OTHER_USER = """
import asyncio, os, sys
from pathlib import Path
from yaosb_jupyter.errors import AuthError
from yaosb_jupyter.link.connection import dial_unix

os.setgid(65534)
os.setuid(65534)
try:
    asyncio.run(dial_unix(Path(sys.argv[1]), {"secret": sys.argv[2]}))
except AuthError as error:
    print(error)
"""


async def test_another_user_is_refused_even_with_the_secret_and_access_to_the_socket(
    station: Station, manager: AsyncManager
) -> None:
    require("root")
    secret = await asyncio.to_thread(read_secret, station.place)
    station.place.runtime_dir.chmod(0o755)
    station.place.socket.chmod(0o666)
    stranger = station.script(OTHER_USER, str(station.place.socket), secret)
    out, err = await asyncio.to_thread(stranger.communicate, timeout=30)
    assert "user 65534 may not use this daemon" in out, err


async def test_a_secret_that_others_can_read_is_refused(station: Station, manager: AsyncManager) -> None:
    station.place.secret.chmod(0o644)
    with pytest.raises(AuthError, match="readable by others"):
        await asyncio.to_thread(read_secret, station.place)


def test_the_secret_of_a_data_directory_stays(station: Station) -> None:
    station.place.data_dir.mkdir()
    secret = make_secret(station.place)
    assert len(secret) >= 32
    assert make_secret(station.place) == secret
    assert [path.name for path in station.place.data_dir.iterdir()] == ["daemon.secret"]


# Requests


def test_every_request_is_served() -> None:
    assert {kind for kind, _ in TABLE.values()} == set(ask.Request.__subclasses__())
    assert all(kind.op == op for op, (kind, _) in TABLE.items())


async def test_an_unknown_request_is_told(served: Served) -> None:
    connection = await served.dial()
    for op in ("newer", None, ["get"], {}):
        with pytest.raises(RemoteError, match="does not know") as caught:
            await connection.call(cast(str, op))
        assert caught.value.code == ProtocolError.__name__
    await connection.close()


@pytest.mark.parametrize(
    ("op", "arguments", "code"),
    [
        ("get", {}, "ProtocolError"),
        ("get", {"ref": 7}, "ProtocolError"),
        ("create", {"options": {"id": "../x"}}, "InvalidOptionError"),
        ("create", {"options": {"labels": {"sandbox-owner": "me"}}}, "InvalidOptionError"),
        ("exec", {"ref": "x", "options": {"argv": []}}, "InvalidOptionError"),
    ],
)
async def test_arguments_are_checked(served: Served, op: str, arguments: dict[str, Any], code: str) -> None:
    connection = await served.dial()
    with pytest.raises(RemoteError) as caught:
        await connection.call(op, arguments)
    assert caught.value.code == code
    await connection.close()


async def test_a_request_that_does_not_fit_a_frame_is_refused_here(served: Served) -> None:
    client = served.client()
    with pytest.raises(InvalidOptionError, match="too large"):
        await client.image_exists("x" * 2**20)
    await client.close()


async def test_a_bug_in_a_request_is_its_own_error(served: Served) -> None:
    client = served.client()
    with pytest.raises(Exception, match="ZeroDivisionError"):
        await client.image_exists("x")
    await client.close()


async def test_progress_arrives_and_what_was_overtaken_is_left_out(served: Served) -> None:
    client = served.client()
    steps: list[PullProgress] = []
    pull = asyncio.create_task(client.pull_image("30000", progress=steps.append))
    await served.service.pulling.wait()
    await until(_given(lambda: {step.current for step in steps} >= {29997, 29998, 29999}))
    served.service.go_on.set()
    await pull
    assert len(steps) < 3000
    for layer in range(3):
        told = [step.current for step in steps if step.layer == f"layer{layer}"]
        assert told == sorted(told)
    await client.close()


async def test_a_progress_callback_that_fails_reaches_the_caller(served: Served) -> None:
    client = served.client()

    def progress(step: PullProgress) -> None:
        raise LookupError("no place to show it")

    with pytest.raises(LookupError):
        await client.pull_image("3", progress=progress)
    await client.close()


def _given(condition: Callable[[], bool]) -> Any:
    async def ask_it() -> bool:
        return condition()

    return ask_it


# Stopping


async def test_a_daemon_that_shall_retire_waits_for_what_is_served(served: Served) -> None:
    client = served.client()
    pull = asyncio.create_task(client.pull_image("1", progress=lambda step: None))
    await served.service.pulling.wait()
    other = await served.dial()
    assert (await other.call("daemon.stop", {"when_idle": True}))["value"] is False
    assert not served.control.stopped.is_set()
    served.service.go_on.set()
    await pull
    await asyncio.wait_for(served.control.stopped.wait(), 5)
    await other.close()
    await client.close()


async def test_an_idle_daemon_retires_at_once(served: Served) -> None:
    connection = await served.dial()
    status = (await connection.call("daemon.status"))["value"]
    assert (status["clients"], status["pid"]) == (1, os.getpid())
    assert (await connection.call("daemon.stop", {"when_idle": True}))["value"] is True
    assert served.control.stopped.is_set()
    await connection.close()


async def test_closing_the_server_ends_what_is_served(tmp_path: Path) -> None:
    service = FakeService()
    server = Server(tmp_path / "s", "right", lambda: cast(Service, service), Control())
    await server.open()

    async def dial() -> Connection:
        try:
            return await dial_unix(tmp_path / "s", {"secret": "right"})
        except FileNotFoundError:
            raise UnavailableError("nobody listens") from None

    client = RemoteService(Line(dial), CreateOptions())
    pull = asyncio.create_task(client.pull_image("1", progress=lambda step: None))
    await service.pulling.wait()
    await server.close("the test ends")
    with pytest.raises(UnavailableError, match="nobody listens"):
        await pull
    assert not (tmp_path / "s").exists()
    await client.close()
