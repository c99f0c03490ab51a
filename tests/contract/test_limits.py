"""Limits: met where the runtime says that it applies them, told honestly where it does not."""

from __future__ import annotations

import json

import pytest

from tests.contract.box import Box
from tests.contract.conftest import MakeBox
from tests.contract.hosts import hosts
from yaosb_jupyter.choices import Status
from yaosb_jupyter.tai.runtimes.base import Capability, RuntimeInfo

MIB = 2**20

FORKS = """
import os, signal
children = []
try:
    for _ in range(200):
        pid = os.fork()
        if pid == 0:
            signal.pause()
        children.append(pid)
    print("never refused")
except OSError as error:
    print("refused", len(children))
for pid in children:
    os.kill(pid, signal.SIGKILL)
"""

HOGS = """
import subprocess, sys
hog = "import time; data = b'x' * (80 << 20); time.sleep(1)"
hogs = [subprocess.Popen([sys.executable, "-c", hog]) for _ in range(4)]
print([hog.wait() for hog in hogs].count(0))
"""

BUSY = """
import json, os, time
if os.fork() == 0:
    began = time.monotonic()
    while time.monotonic() - began < 2:
        pass
    os._exit(0)
began = time.monotonic()
while time.monotonic() - began < 2:
    pass
os.wait()
print(json.dumps(sum(os.times()[:4]) / (time.monotonic() - began)))
"""


def applies(capability: Capability, told: str, info: RuntimeInfo) -> bool:
    """Whether the limit is applied; if not, the isolation that is told must not claim it is held for a sandbox."""
    if capability in info.capabilities:
        return True
    assert told.startswith("none") or "per process" in told or "per user" in told
    return False


async def hog(box: Box, size: int) -> int:
    return (await box.python(f"data = bytearray({size}); data[::4096] = b'x' * len(data[::4096])")).code


async def test_x18_a_hog_meets_its_cap(make_box: MakeBox, info: RuntimeInfo) -> None:
    box = await make_box(memory=128 * MIB)
    assert await hog(box, 16 * MIB) == 0
    if applies(Capability.MEMORY_LIMIT, info.isolation.memory, info):
        assert await hog(box, 300 * MIB) != 0
        assert (await box.sh("echo answers")).stdout == b"answers\n"


@pytest.mark.parametrize("host", hosts("docker", "docker-relay"), indirect=True)
async def test_x18_that_memory_was_missing_is_told(make_box: MakeBox) -> None:
    box = await make_box(memory=64 * MIB)
    grow = "python3 -c 'data = bytearray(); exec(\"while True: data += bytes(1 << 20)\")'"
    for script in (grow, f"exec {grow}"):
        ran = await box.sh(script)
        assert (ran.code, ran.status.out_of_memory) == (137, True)
    killed = await box.sh("kill -9 $$")
    assert (killed.code, killed.status.out_of_memory) == (137, False)


async def test_x18_the_cap_of_hogs_holds_for_all_processes_together(make_box: MakeBox, info: RuntimeInfo) -> None:
    box = await make_box(memory=128 * MIB)
    ended_well = json.loads((await box.python(HOGS)).stdout)
    if applies(Capability.MEMORY_LIMIT, info.isolation.memory, info):
        assert ended_well < 2
    elif "for all together" in info.isolation.memory:  # looked after from outside, with a delay
        assert ended_well < 4
    else:
        assert ended_well == 4


async def test_x18_files_in_memory_leave_room_for_commands(make_box: MakeBox, info: RuntimeInfo) -> None:
    box = await make_box(memory=128 * MIB)
    if applies(Capability.MEMORY_LIMIT, info.isolation.memory, info):
        for place in ("/tmp", "/dev/shm", "/dev"):
            await box.sh(f"head -c {160 * MIB} /dev/zero > {place}/fill")
        assert await hog(box, 16 * MIB) == 0
        assert (await box.runtime.inspect(box.runtime_id)).status is Status.RUNNING


async def test_x18_the_pids_cap_is_met(make_box: MakeBox, info: RuntimeInfo) -> None:
    box = await make_box(pids=40)
    ran = await box.python(FORKS)
    if applies(Capability.PIDS_LIMIT, info.isolation.pids, info):
        words = ran.stdout.split()
        assert words[0] == b"refused"
        assert int(words[1]) < 40
    assert (await box.sh("echo answers")).stdout == b"answers\n"


async def test_the_cpu_share_is_met(make_box: MakeBox, info: RuntimeInfo) -> None:
    box = await make_box(cpus=0.5)
    share = json.loads((await box.python(BUSY)).stdout)
    if applies(Capability.CPU_LIMIT, info.isolation.cpu, info):
        assert share < 0.75
    assert share > 0.02


async def test_the_cap_is_told(make_box: MakeBox) -> None:
    box = await make_box(memory=256 * MIB)
    assert (await box.runtime.stats(box.runtime_id)).memory_limit == 256 * MIB
