"""Who a container runs as and what it is kept from, seen from inside."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.contract.box import eventually
from tests.docker.conftest import MakeBox, OpenRuntime
from tests.rig.require import NOPYTHON_IMAGE, require
from yaosb_jupyter.choices import Network
from yaosb_jupyter.errors import InvalidOptionError, LimitExceededError
from yaosb_jupyter.options import PortMapping
from yaosb_jupyter.tai.runtimes.docker import DockerRuntime

pytestmark = pytest.mark.docker

STATUS = "cat /proc/self/status"
ROOT_CAPABILITIES = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 6 | 1 << 7  # CHOWN DAC_OVERRIDE FOWNER SETGID SETUID


def field(status: bytes, name: str) -> str:
    lines = dict(line.split(":", 1) for line in status.decode().splitlines() if ":" in line)
    return lines[name].strip()


async def test_it_has_no_privileges(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime)
    status = (await box.sh(STATUS)).stdout
    assert field(status, "CapEff") == field(status, "CapBnd") == "0" * 16
    assert field(status, "NoNewPrivs") == "1"
    assert field(status, "Seccomp") == "2"
    assert (await box.sh("mount -t tmpfs none /mnt")).code != 0


async def test_root_has_five_capabilities(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime, user="root")
    status = (await box.sh(STATUS)).stdout
    assert int(field(status, "CapEff"), 16) == ROOT_CAPABILITIES
    assert (
        await box.sh("id -u; echo $HOME; chown 5:5 . && mkdir -m 700 theirs && chown 7:7 theirs")
    ).stdout == b"0\n/root\n"


async def test_each_has_a_user_id_of_its_own(runtime: DockerRuntime, make_box: MakeBox) -> None:
    require("root")
    boxes = [await make_box(runtime) for _ in range(3)]
    ids = {int((await box.sh("id -u")).stdout) for box in boxes}
    assert len(ids) == 3
    assert all(200_000 <= uid <= 265_535 for uid in ids)
    assert {box.spec.workspace.stat().st_uid for box in boxes} == ids


async def test_the_range_of_user_ids_is_chosen(open_runtime: OpenRuntime, make_box: MakeBox) -> None:
    require("root")
    runtime = await open_runtime(uid_range="300000-300001")
    ids = {int((await (await make_box(runtime)).sh("id -u")).stdout) for _ in range(2)}
    assert ids == {300_000, 300_001}
    with pytest.raises(LimitExceededError, match="uid_range"):
        await make_box(runtime)


@pytest.mark.parametrize("image", [None, NOPYTHON_IMAGE])
async def test_it_has_a_name_and_a_home(image: str | None, runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime, **({"image": image} if image else {}))
    ran = await box.sh("whoami && cd && pwd && echo kept > file && cat file && cd /workspace && echo too > file")
    assert (ran.code, ran.stdout) == (0, b"sandbox\n/home/sandbox\nkept\n")
    await box.stop()
    await box.start()
    assert (await box.sh("cat ~/file")).stdout == b"kept\n"


async def test_a_user_of_the_image(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime, user="nobody")
    assert (await box.sh("whoami; echo mine > file; cat file")).stdout == b"nobody\nmine\n"
    with pytest.raises(InvalidOptionError, match="nosuchuser"):
        await make_box(runtime, user="nosuchuser")


async def test_it_sees_its_workspace_and_run_directory_only(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime)
    found = await runtime._engine.call(lambda client: client.inspect_container(box.runtime_id))
    mounts = {mount["Destination"]: (mount["Source"], mount["RW"]) for mount in found["Mounts"]}
    assert mounts == {
        "/workspace": (str(box.spec.workspace), True),
        "/run/yaosb": (str(box.spec.directory / "run"), False),
    }
    assert (await box.sh("echo x > /run/yaosb/file")).code != 0
    assert found["HostConfig"]["Init"] is False
    assert (await box.sh("cat /proc/1/comm")).stdout == b"python3\n"


async def test_the_engine_does_not_know_the_users_environment(runtime: DockerRuntime, make_box: MakeBox) -> None:
    command = ("sh", "-c", 'echo "$SECRET"; sleep 1000')
    for box in (
        await make_box(runtime, env={"SECRET": "it's $ecret"}),
        await make_box(runtime, env={"SECRET": "it's $ecret"}, cmd=command),
    ):
        found = await runtime._engine.call(lambda client, box=box: client.inspect_container(box.runtime_id))
        assert "ecret" not in json.dumps(found).replace("$SECRET", "")
        assert (await box.sh('echo "$SECRET"')).stdout == b"it's $ecret\n"
        assert (box.spec.directory / "run/environment.json").stat().st_mode & 0o777 == 0o600
    async for chunk in runtime.logs(box.runtime_id, follow=True):
        assert chunk.data == b"it's $ecret\n"
        break


async def test_limits_are_the_engines(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime, memory=128 * 2**20, cpus=0.5, pids=40)
    host = (await runtime._engine.call(lambda client: client.inspect_container(box.runtime_id)))["HostConfig"]
    assert (host["Memory"], host["MemorySwap"]) == (128 * 2**20, 128 * 2**20)
    assert (host["NanoCpus"], host["PidsLimit"]) == (500_000_000, 40)


async def test_sandboxes_do_not_reach_each_other(runtime: DockerRuntime, make_box: MakeBox) -> None:
    listening = await make_box(
        runtime,
        network=Network.BRIDGE,
        cmd=("python3", "-m", "http.server", "8000"),
        ports=(PortMapping(container_port=8000),),
    )
    other = await make_box(runtime, network=Network.BRIDGE)
    state = await runtime.inspect(listening.runtime_id)
    connect = "import socket,sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1)"

    async def serves() -> bool:
        return (await listening.python(connect, "127.0.0.1", "8000")).code == 0

    await eventually(serves, what="the server listens")
    assert (await other.python(connect, state.ip, "8000")).code != 0
    assert state.ports[0].host_ip == "127.0.0.1"
    assert state.ports[0].host_port > 0
    assert [each.ports for each in await runtime.list({"sandbox-uid": listening.spec.uid})] == [state.ports]


@pytest.mark.parametrize("host_ip", ["127.0.0.1", "::1"])
async def test_a_port_is_published_where_it_was_asked_for_only(
    host_ip: str, runtime: DockerRuntime, make_box: MakeBox
) -> None:
    box = await make_box(runtime, network=Network.BRIDGE, ports=(PortMapping(container_port=8000, host_ip=host_ip),))
    assert [port.host_ip for port in (await runtime.inspect(box.runtime_id)).ports] == [host_ip]


async def test_without_network_there_is_none(runtime: DockerRuntime, make_box: MakeBox) -> None:
    box = await make_box(runtime)
    assert (await box.sh("ls /sys/class/net")).stdout == b"lo\n"
    assert (await runtime.inspect(box.runtime_id)).ip == ""


async def test_what_cannot_be_given_is_named(runtime: DockerRuntime, make_box: MakeBox) -> None:
    for fields, match in (
        ({"network": Network.ALLOWLIST}, "allowlist"),
        ({"ports": (PortMapping(container_port=80),)}, "ports"),
        ({"gpus": "many"}, "gpus"),
        ({"memory": 4 * 2**20}, "(?i)memory"),
        ({"labels": {"yaosb.uid": "0"}}, "reserved"),
        ({"workspace": Path("/nonexistent/work")}, "bind source path does not exist"),
    ):
        with pytest.raises(InvalidOptionError, match=match):
            await make_box(runtime, **fields)


async def test_a_directory_of_the_hosts_is_used_and_kept(
    runtime: DockerRuntime, make_box: MakeBox, directory: Path
) -> None:
    work = directory / "mine"
    work.mkdir()
    if os.geteuid() == 0:
        os.chown(work, 1234, 1234)
    box = await make_box(runtime, workspace=work)
    assert (await box.sh("echo here > file; id -u")).stdout == f"{work.stat().st_uid}\n".encode()
    await runtime.remove(box.runtime_id)
    await runtime.remove_workspace(box.spec)
    assert (work / "file").read_text() == "here\n"


async def test_what_isolates_is_told_as_found(directory: Path) -> None:
    runtime = DockerRuntime("local", {}, directory / "run")
    try:
        told = (await runtime.open()).isolation
    finally:
        await runtime.close()
    assert told.other_sandboxes == "not reachable"
    assert "sandbox" in told.memory
    assert "sandbox" in told.pids


async def test_nothing_is_left_after_a_failed_create(runtime: DockerRuntime, make_box: MakeBox) -> None:
    with pytest.raises(InvalidOptionError):
        await make_box(runtime, memory=4 * 2**20, labels={"managed-by": "yao-sandbox", "t": "failed"})
    assert await runtime.list({"t": "failed"}) == []
