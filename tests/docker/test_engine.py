"""The engine itself: how it is reached, that it may go away, pulls, what is left behind."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.contract.box import eventually
from tests.docker.conftest import MakeBox, OpenRuntime, archive
from tests.docker.fakes import FakeRegistry, Forwarder
from tests.docker.test_address import write_context
from tests.rig.require import TEST_IMAGE, require
from yaosb_jupyter.errors import (
    ImageNotFoundError,
    InvalidOptionError,
    NotAvailableError,
    NotFoundError,
    RuntimeUnavailableError,
    SandboxLostError,
)
from yaosb_jupyter.guest.confined import ConfinedDirectory
from yaosb_jupyter.options import MAX_PIDS, ExecOptions
from yaosb_jupyter.tai.runtimes.docker import DockerRuntime, throwaway
from yaosb_jupyter.types import PullProgress

pytestmark = pytest.mark.docker

SOCKET = "/var/run/docker.sock"


@pytest.fixture
async def forwarder(directory: Path) -> AsyncIterator[Forwarder]:
    forwarder = Forwarder(str(directory / "engine.sock"), SOCKET)
    await forwarder.start()
    yield forwarder
    await forwarder.go_away()


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    registry = FakeRegistry(archive({"file": os.urandom(200_000)}))
    yield registry
    registry.close()


async def test_docker_host_is_heeded(
    monkeypatch: pytest.MonkeyPatch, open_runtime: OpenRuntime, forwarder: Forwarder, directory: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{directory}/engine.sock")
    runtime = await open_runtime("local")
    await forwarder.go_away()
    with pytest.raises(RuntimeUnavailableError, match="DOCKER_HOST"):
        await runtime.list({})


async def test_a_context_is_heeded(monkeypatch: pytest.MonkeyPatch, open_runtime: OpenRuntime, directory: Path) -> None:
    monkeypatch.setenv("HOME", str(directory))
    monkeypatch.delenv("DOCKER_CONFIG", raising=False)
    write_context(directory, "here", f"unix://{SOCKET}")
    await (await open_runtime("context://here")).list({})
    with pytest.raises(NotAvailableError, match="'elsewhere'"):
        await open_runtime("context://elsewhere")


@pytest.mark.parametrize("address", ["unix:///nonexistent.sock", "tcp://127.0.0.1:1"])
async def test_an_engine_that_is_not_there(address: str, open_runtime: OpenRuntime) -> None:
    with pytest.raises(RuntimeUnavailableError, match="does not answer"):
        await open_runtime(address)


async def test_what_answers_but_is_no_engine(open_runtime: OpenRuntime, registry: FakeRegistry) -> None:
    with pytest.raises((RuntimeUnavailableError, NotFoundError)):
        await open_runtime(f"tcp://{registry.host}")


async def test_a_missing_library_is_told(monkeypatch: pytest.MonkeyPatch, open_runtime: OpenRuntime) -> None:
    monkeypatch.setitem(sys.modules, "docker", None)
    with pytest.raises(NotAvailableError, match=r"pip install 'yaosb-jupyter\[docker\]'"):
        await open_runtime()


async def test_an_engine_that_goes_away_is_told(
    open_runtime: OpenRuntime, make_box: MakeBox, runtime: DockerRuntime, forwarder: Forwarder, directory: Path
) -> None:
    """To who listens, who calls, and who runs a command; and it may come back."""
    behind = await open_runtime(f"unix://{directory}/engine.sock")
    box = await make_box(runtime)
    stream = await behind.exec_stream(box.runtime_id, ExecOptions(argv=("sh", "-c", "echo up; exec sleep 1000")))
    assert await stream.receive() is not None
    listening = asyncio.ensure_future(anext(behind.events()))
    await asyncio.sleep(0)
    await forwarder.go_away()
    async with asyncio.timeout(20):
        with pytest.raises(RuntimeUnavailableError):
            await listening
        with pytest.raises(SandboxLostError):
            await stream.wait()
        with pytest.raises(RuntimeUnavailableError):
            await behind.inspect(box.runtime_id)
    await asyncio.to_thread((directory / "engine.sock").unlink)
    await forwarder.start()

    async def hear() -> None:
        async for event in behind.events():
            if event.runtime_id == box.runtime_id:
                return

    hearing = asyncio.ensure_future(hear())

    async def heard() -> bool:
        await behind.stop(box.runtime_id, 1)
        await behind.start(box.runtime_id)
        return hearing.done()

    await eventually(heard, what="events come again")
    await hearing


async def test_tls_carries_everything(make_box: MakeBox, open_runtime: OpenRuntime, directory: Path) -> None:
    """Calls, output both ways, stdin's end (X5), events, files, with volumes in place of shared directories."""
    require("docker-tls")
    certs = os.environ["SANDBOX_TEST_REMOTE_CERTS"]
    tls = {f"tls_{name}": f"{certs}/{name}.pem" for name in ("ca", "cert", "key")}
    address = os.environ["SANDBOX_TEST_REMOTE_ADDR"]
    runtime = await open_runtime(address, shared_files="no", **tls)
    box = await make_box(runtime)
    data = os.urandom(3_000_000)
    ran = await box.run("sh", "-c", "cat; echo end >&2", stdin=data)
    assert (ran.stdout == data, ran.stderr) == (True, b"end\n")
    await box.write("deep/er/file", data)
    assert (await box.sh("cat deep/er/file | wc -c; stat -c %U deep/er/file")).stdout == b"3000000\nsandbox\n"
    await box.stop()
    assert await box.read("deep/er/file") == data
    await box.volume.rename("deep/er/file", "deep/moved")
    assert [each.name for each in await box.volume.list("deep")] == ["er", "moved"]
    tree = directory / "tree"
    (tree / "a/b").mkdir(parents=True)
    (tree / "a/b/big").write_bytes(data)
    (tree / "empty").touch(0o755)
    await box.volume.push(tree, "copied")
    assert (await box.volume.stat("copied/empty")).mode & 0o777 == (tree / "empty").stat().st_mode & 0o777
    await box.start()
    assert (await box.sh("ln -s /etc/passwd copied/link && wc -c < copied/a/b/big")).stdout == b"3000000\n"
    copied = await box.volume.pull("copied", directory / "back")
    assert (copied.files, copied.skipped) == (2, ("link",))
    assert (directory / "back/a/b/big").read_bytes() == data
    await runtime.remove(box.runtime_id)
    with pytest.raises(NotFoundError):
        name = f"yaosb-{box.spec.uid.lower()}"
        await runtime._engine.call(lambda client: client.inspect_volume(name))


async def test_tls_without_the_right_authority_is_refused(open_runtime: OpenRuntime) -> None:
    require("docker-tls")
    certs = os.environ["SANDBOX_TEST_REMOTE_CERTS"]
    with pytest.raises(RuntimeUnavailableError, match=r"(?i)certificate"):
        await open_runtime(
            os.environ["SANDBOX_TEST_REMOTE_ADDR"], tls_cert=f"{certs}/cert.pem", tls_key=f"{certs}/key.pem"
        )
    with pytest.raises(InvalidOptionError, match="certificates"):
        await open_runtime("tcp://127.0.0.1:1", tls_ca="/nonexistent.pem")


async def test_whether_files_are_shared_is_found_out(runtime: DockerRuntime, directory: Path) -> None:
    from yaosb_jupyter.tai.runtimes.docker.probe import shares_files

    assert await shares_files(runtime._engine, directory / "run")
    private = f"/proc/{os.getpid()}/task/none"  # the engine cannot see what does not exist for it
    with pytest.raises(OSError):
        await shares_files(runtime._engine, Path(private))


async def test_a_workspace_the_engine_cannot_see_is_refused(
    open_runtime: OpenRuntime, make_box: MakeBox, tmp_path: Path
) -> None:
    runtime = await open_runtime(shared_files="no")
    with pytest.raises(InvalidOptionError, match="workspace"):
        await make_box(runtime, workspace=tmp_path)


async def test_j9_a_pull_tells_its_layers(runtime: DockerRuntime, registry: FakeRegistry) -> None:
    image = f"{registry.host}/there:1"
    assert not await runtime.image_exists(image)
    steps: list[PullProgress] = []
    await runtime.pull_image(image, steps.append)
    assert await runtime.image_exists(image)
    await runtime._engine.call(lambda client: client.remove_image(image))
    assert any(step.layer and step.total for step in steps)
    assert any("Pull complete" in step.status for step in steps)


async def test_j9_a_pull_can_be_cancelled(runtime: DockerRuntime, registry: FakeRegistry) -> None:
    registry.hold.clear()
    pulling = asyncio.create_task(runtime.pull_image(f"{registry.host}/there:1"))
    assert await asyncio.to_thread(registry.asked_for_layer.wait, 20)
    pulling.cancel()
    async with asyncio.timeout(5):
        with pytest.raises(asyncio.CancelledError):
            await pulling
    assert not await runtime.image_exists(f"{registry.host}/there:1")


async def test_why_an_image_cannot_be_had(runtime: DockerRuntime, registry: FakeRegistry) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(RuntimeUnavailableError, match="registry"):
        await runtime.pull_image(f"127.0.0.1:{port}/some:1")
    with pytest.raises(ImageNotFoundError, match="no image"):
        await runtime.pull_image(f"{registry.host}/missing:1")
    with pytest.raises(InvalidOptionError, match="not a valid name"):
        await runtime.pull_image("Not/Valid")


async def test_a_helper_container_left_behind_is_swept(monkeypatch: pytest.MonkeyPatch, runtime: DockerRuntime) -> None:
    ours = await throwaway.start_throwaway(runtime._engine, TEST_IMAGE, ["sleep", "1000"])
    monkeypatch.setattr(throwaway.os, "getpid", lambda: MAX_PIDS + 1)  # no process has that number
    left = await throwaway.start_throwaway(runtime._engine, TEST_IMAGE, ["sleep", "1000"])
    await throwaway.sweep(runtime._engine)
    await runtime._engine.call(lambda client: client.inspect_container(ours))
    await throwaway.discard(runtime._engine, ours)
    with pytest.raises(NotFoundError):
        await runtime._engine.call(lambda client: client.inspect_container(left))


async def test_x13_files_only_the_engine_may_remove(
    runtime: DockerRuntime, make_box: MakeBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an ordinary user's manager meets files of the sandbox's root: its own attempt fails once."""
    from yaosb_jupyter.tai.runtimes.docker import workspace

    box = await make_box(runtime, user="root")
    assert (await box.sh("mkdir -p a/b && echo x > a/b/.hidden && chmod -R 0 a && ln -s /etc link")).code == 0
    await runtime.remove(box.runtime_id)
    really, tried = workspace.remove, []

    def refuse_first(path: Path) -> bool:
        tried.append(path)
        if len(tried) == 1:
            return False
        assert os.listdir(path) == []  # noqa: PTH208 - emptied by the engine
        return really(path)

    monkeypatch.setattr(workspace, "remove", refuse_first)
    await runtime.remove_workspace(box.spec)
    assert not box.spec.workspace.exists()


async def test_x13_files_that_the_manager_may_not_remove(
    runtime: DockerRuntime, make_box: MakeBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an ordinary user's manager meets files of the sandbox's root, in the workspace that it shares."""
    box = await make_box(runtime)
    await box.sh("chmod 777 .")
    assert (await box.sh("mkdir -p a/b && echo x > a/b/file && chmod -R 700 a", user="root")).code == 0

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "denied")

    monkeypatch.setattr(ConfinedDirectory, "remove", refuse)
    await box.volume.remove("a", recursive=True)
    assert await box.volume.list() == []


async def test_m10_events_say_who_removed_it(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime)
    events = runtime.events()
    await runtime._engine.call(lambda client: client.remove_container(box.runtime_id, force=True))
    async with asyncio.timeout(20):
        async for event in events:
            if event.runtime_id == box.runtime_id and event.status.value == "removed":
                assert "someone else" in event.reason
                break
