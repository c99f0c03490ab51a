"""No shared file system: our manager in a container that has the engine's socket, as Jupyter in a container is."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from tests.rig.require import TEST_IMAGE

pytestmark = pytest.mark.docker

REPOSITORY = Path(__file__).parents[2]
SOCKET = "/var/run/docker.sock"


async def test_a_manager_in_a_container_makes_sandboxes_beside_it() -> None:
    shown = {str(REPOSITORY), sys.prefix, sys.base_prefix}
    mounts = [f"type=bind,source={path},target={path},readonly" for path in sorted(shown)]
    argv = ["docker", "run", "--rm", "--network", "none", "--env", f"PYTHONPATH={REPOSITORY}"]
    for mount in (*mounts, f"type=bind,source={SOCKET},target={SOCKET}"):
        argv += ["--mount", mount]
    program = [sys.executable, str(REPOSITORY / "tests/docker/inside.py"), TEST_IMAGE, "/tmp"]
    process = await asyncio.create_subprocess_exec(
        *argv,
        TEST_IMAGE,
        *program,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(os.environ),
    )
    async with asyncio.timeout(100):
        output, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    assert json.loads(output) == {
        "link": "relay",
        "exec": [0, "from the manager\nhello\n"],
        "read": "from inside\n",
        "stopped": "from inside\n",
        "again": "from inside\n",
        "left": 0,
    }
