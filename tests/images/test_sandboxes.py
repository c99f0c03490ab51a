"""Sandboxes of our images."""

from __future__ import annotations

import pytest

from tests.images.serving import answer, served
from yaosb_jupyter import AsyncManager
from yaosb_jupyter.errors import CommandNotFoundError
from yaosb_jupyter.images.catalogue import BASE, DATA, DESKTOP, TEST
from yaosb_jupyter.settings import Settings
from yaosb_jupyter.types import PoolSpec

pytestmark = pytest.mark.docker

LISTENING = """
import socket
for name in ("tcp", "tcp6"):
    with open("/proc/net/" + name) as table:
        for line in list(table)[1:]:
            local, state, uid = line.split()[1], line.split()[3], line.split()[7]
            if state == "0A" and uid != "0":  # root's is the engine's resolver
                print(local)
"""


async def test_base_is_the_default(manager: AsyncManager) -> None:
    sandbox = await manager.create("lab")
    assert sandbox.last_info.image == BASE.short_name
    ran = await sandbox.exec("whoami; pwd; echo $HOME; bash -c 'echo $0'; python --version; pip --version; ls -A ~")
    user, directory, home, shell, python, pip = ran.stdout.splitlines()
    assert (user, directory, home, shell) == ("sandbox", "/workspace", "/home/sandbox", "bash")
    assert python.startswith("Python 3.11")
    assert pip.startswith("pip ")


async def test_packages_can_be_installed(manager: AsyncManager) -> None:
    sandbox = await manager.create("lab", network="none")
    await sandbox.files.write("thing/pyproject.toml", "[project]\nname = 'thing'\nversion = '1'\n")
    await sandbox.files.write("thing/thing.py", "WORD = 'installed'\n")
    await sandbox.exec("pip install --quiet --no-index --no-build-isolation ./thing", check=True, timeout="60s")
    assert (await sandbox.exec("cd / && python -c 'import thing; print(thing.WORD)'")).stdout == "installed\n"


async def test_services_start_with_the_sandbox_and_again(manager: AsyncManager) -> None:
    sandbox = await manager.create("web", image=TEST.full_name, network="none")
    for _ in range(2):
        await served(sandbox, 3000)
        for port in (3000, 3001):
            assert b"sandbox-test" in await answer(sandbox, port, "/")
            events = await answer(sandbox, port, "/sse")
            assert [line for line in events.splitlines() if line.startswith(b"data:")] == [
                f"data: event-{number}".encode() for number in range(5)
            ]
        assert (await sandbox.exec("ps -o user= -C nginx | sort -u")).stdout == "sandbox\n"
        await sandbox.stop()
        await sandbox.start()


async def test_services_outlive_the_manager(settings: Settings) -> None:
    async with AsyncManager.open(settings) as manager:
        sandbox = await manager.create("web", image=TEST.full_name)
        await served(sandbox, 3000)
        before = (await sandbox.exec("pgrep -x nginx | sort", check=True)).stdout
    async with AsyncManager.open(settings) as manager:
        sandbox = await manager.get("web")
        assert (await sandbox.exec("pgrep -x nginx | sort")).stdout == before
        assert b"sandbox-test" in await answer(sandbox, 3000, "/")
        await sandbox.remove()


@pytest.mark.parametrize("link", ["auto", "engine"])
async def test_a_command_of_its_own_runs_beside_the_services(link: str, manager: AsyncManager) -> None:
    await manager.add_pool(PoolSpec(name="other", address="local", options={"link": link}))
    sandbox = await manager.create(
        "web", pool="other", image=TEST.full_name, cmd=["sh", "-c", "echo $WORD; exec sleep 1000"], env={"WORD": "hi"}
    )
    async for chunk in sandbox.logs(follow=True):
        assert chunk.data == b"hi\n"
        break
    await sandbox.exec("until pgrep -x nginx; do sleep 0.1; done", check=True, timeout="30s")


async def test_a_command_that_is_missing_is_told(manager: AsyncManager) -> None:
    with pytest.raises(CommandNotFoundError, match="no-such-command"):
        await manager.create("lab", cmd=["no-such-command"])


async def test_the_images_own_entrypoint_starts_services_too(manager: AsyncManager) -> None:
    sandbox = await manager.create("web", image=TEST.full_name, cmd="image")
    await served(sandbox, 3000)
    assert b"sandbox-test" in await answer(sandbox, 3000, "/")


async def test_a_desktop_shows_itself_on_its_own_loopback_only(manager: AsyncManager) -> None:
    sandbox = await manager.create("desk", vnc=True)
    assert sandbox.last_info.image == DESKTOP.short_name
    assert sandbox.last_info.warnings == ()
    await served(sandbox, 5900)
    connection = await sandbox.dial(5900)
    assert (await connection.receive()).startswith(b"RFB 003.008")
    await connection.aclose()
    assert (await sandbox.exec(["python3", "-c", LISTENING])).stdout == "0100007F:170C\n"
    assert (await sandbox.exec("echo $DISPLAY; ls /tmp/.X11-unix")).stdout == ":1\nX1\n"


async def test_a_desktop_comes_back_when_its_screen_is_lost(manager: AsyncManager) -> None:
    sandbox = await manager.create("desk", image=DESKTOP.full_name)
    await served(sandbox, 5900)
    screen = (await sandbox.exec("pgrep Xvfb", check=True)).stdout.strip()
    await sandbox.exec(f"kill -9 {screen}", check=True)
    again = f"until pgrep Xvfb | grep -vx {screen}; do sleep 0.1; done"
    await sandbox.exec(again, check=True, timeout="30s")
    await served(sandbox, 5900)


async def test_data_has_what_it_says(manager: AsyncManager) -> None:
    sandbox = await manager.create("data", image=DATA.full_name, network="none")
    program = """
import matplotlib.pyplot as plt, numpy as np, pandas as pd, ipykernel
from sklearn.linear_model import LinearRegression
x = np.arange(10.0).reshape(-1, 1)
print(round(LinearRegression().fit(x, 3 * x).coef_[0][0]))
pd.DataFrame(x).plot()
plt.savefig("plot.png")
"""
    ran = await sandbox.exec(["python3", "-c", program], check=True, timeout="60s")
    assert ran.stdout == "3\n"
    assert (await sandbox.files.read("plot.png")).startswith(b"\x89PNG")
