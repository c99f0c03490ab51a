"""A container for one small task: made, run, read, removed, also when cancelled."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from yaosb_jupyter.errors import UnavailableError
from yaosb_jupyter.tai.runtimes.docker.containers import create_started, discard
from yaosb_jupyter.tai.runtimes.docker.engine import Engine

_SECONDS = 60.0
THROWAWAY_LABEL = "yaosb.throwaway"
_STALE_SECONDS = 600.0


async def run_throwaway(
    engine: Engine,
    image: str,
    argv: Sequence[str],
    *,
    host_config: Mapping[str, Any] | None = None,
    check: bool = True,
    seconds: float = _SECONDS,
    user: str = "0:0",
    archive: bytes = b"",
) -> tuple[int, bytes]:
    """Exit code and standard output of ``argv``, run without network and capabilities unless told otherwise.

    ``archive`` is a tar of files to be there. Raises `UnavailableError` where it fails and ``check`` is set,
    `ImageNotFoundError`.
    """
    container = await start_throwaway(engine, image, argv, host_config=host_config, user=user, archive=archive)
    try:
        async with asyncio.timeout(seconds):
            ended = await engine.call(lambda client: client.wait(container))
        code = int(ended["StatusCode"])
        output = await engine.call(lambda client: client.logs(container, stdout=True, stderr=False))
        if check and code:
            said = await engine.call(lambda client: client.logs(container, stdout=False, stderr=True))
            raise UnavailableError(f"a helper container failed ({code}): {said.decode(errors='replace')[:500]}")
    except TimeoutError as error:
        raise UnavailableError("a helper container did not end in time") from error
    finally:
        await discard(engine, container)
    return code, output


async def start_throwaway(
    engine: Engine,
    image: str,
    argv: Sequence[str],
    *,
    host_config: Mapping[str, Any] | None = None,
    user: str = "0:0",
    archive: bytes = b"",
) -> str:
    """Starts one and returns its id; the caller discards it."""
    body = {
        "Image": image,
        "Entrypoint": list(argv[:1]),
        "Cmd": list(argv[1:]),
        "User": user,
        "Labels": await throwaway_labels(),
        "HostConfig": {
            "NetworkMode": "none",
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m"}},
            **(host_config or {}),
        },
    }
    return await create_started(engine, body, archive)


async def sweep(engine: Engine) -> None:
    """Removes throwaway containers that a process left behind when it was killed."""
    found = await engine.call(lambda client: client.containers(all=True, filters={"label": THROWAWAY_LABEL}))
    for each in found:
        is_orphan = await asyncio.to_thread(_is_orphan, each["Labels"][THROWAWAY_LABEL])
        if is_orphan or time.time() - each["Created"] > _STALE_SECONDS:
            await discard(engine, each["Id"])


async def throwaway_labels() -> dict[str, str]:
    """Marks a container for `sweep`, with the process that it is for."""
    return {THROWAWAY_LABEL: await asyncio.to_thread(_maker, os.getpid())}


def _maker(pid: int) -> str:
    """Names a process: a pid means something only within its namespace and boot."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()} {pid}"
    except OSError:
        return f"unknown {pid}"


def _is_orphan(maker: str) -> bool:
    """Whether the process that made it was one of this system and is gone; of others only age tells."""
    pid = maker.rpartition(" ")[2]
    return pid.isdigit() and maker == _maker(int(pid)) and not Path("/proc", pid).exists()
