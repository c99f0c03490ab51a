"""What holds on this engine: whether it sees our files, which limits it keeps, what a sandbox can reach. Tried."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yaosb_jupyter.errors import ImageNotFoundError, InvalidOptionError, SandboxError
from yaosb_jupyter.tai.runtimes.base import Capability
from yaosb_jupyter.tai.runtimes.docker.containers import discard
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.spec import NETWORK_NAME
from yaosb_jupyter.tai.runtimes.docker.throwaway import run_throwaway, start_throwaway
from yaosb_jupyter.types import Isolation

_NEIGHBOUR_PORT = 8000
_LISTEN = f"""
import socket
s = socket.create_server(("0.0.0.0", {_NEIGHBOUR_PORT}))
while True:
    s.accept()[0].close()
"""
# A refused connection is an answer too: the other side was reached.
_REACH = """
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor
def reach(target):
    try:
        socket.create_connection((target[0], target[1]), timeout=0.7).close()
    except ConnectionRefusedError:
        pass
    except OSError:
        return False
    return True
routes = [line.split() for line in open("/proc/net/route")][1:]
gateway = next((socket.inet_ntoa(bytes.fromhex(r[2])[::-1]) for r in routes if r[1] == "00000000"), "")
targets = json.loads(sys.argv[1])
if gateway:
    targets["host"] = [gateway, 1]
with ThreadPoolExecutor(8) as pool:
    found = dict(zip(targets, pool.map(reach, targets.values())))
found["routed"] = bool(gateway)
print(json.dumps(found))
"""


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What a container on our bridge reached; None where it was not tried."""

    routed: bool | None = None
    host: bool | None = None
    lan: bool | None = None
    metadata: bool | None = None
    neighbour: bool | None = None


@dataclass(frozen=True, kw_only=True)
class EngineFacts:
    """What the engine says of itself."""

    engine_id: str
    version: str
    memory: bool
    swap: bool
    cpu: bool
    pids: bool
    rootless: bool
    remapped: bool

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> EngineFacts:
        security = " ".join(info.get("SecurityOptions") or ())
        return cls(
            engine_id=str(info.get("ID", "")),
            version=str(info.get("ServerVersion", "")),
            memory=bool(info.get("MemoryLimit")),
            swap=bool(info.get("SwapLimit")),
            cpu=bool(info.get("CpuCfsQuota")),
            pids=bool(info.get("PidsLimit")),
            rootless="name=rootless" in security,
            remapped="name=userns" in security,
        )


async def shares_files(engine: Engine, directory: Path) -> bool:
    """Whether the engine can mount our directories.

    It is asked for a container of an image that cannot exist, with a mount of a file of a random name: it says that the
    file is missing, or, seeing it, that the image is. A second name that is no file tells that this order holds.
    """
    nonce = secrets.token_hex(16)
    seen, unseen = directory / f"seen-{nonce}", directory / f"unseen-{nonce}"
    await asyncio.to_thread(directory.mkdir, parents=True, exist_ok=True)
    await asyncio.to_thread(seen.touch)
    try:
        return await _sees(engine, seen, nonce) and not await _sees(engine, unseen, nonce)
    finally:
        await asyncio.to_thread(seen.unlink, missing_ok=True)


async def _sees(engine: Engine, path: Path, nonce: str) -> bool:
    mount = {"Type": "bind", "Source": str(path), "Target": "/nonce", "ReadOnly": True}
    body = {"Image": f"yaosb/none-{nonce}", "HostConfig": {"Mounts": [mount]}}
    try:
        await engine.call(lambda client: client.create_container_from_config(body))  # type: ignore[no-untyped-call]
    except ImageNotFoundError:
        return True
    except InvalidOptionError:
        return False
    raise AssertionError("an engine that has every image")


_known_reach: dict[tuple[str, str], Reach] = {}


async def probe_reach(engine: Engine, facts: EngineFacts, images: tuple[str, ...]) -> Reach:
    """What two containers on our bridge reach, by the first of ``images`` that has python3; tried once a process."""
    network = await engine.call(lambda client: client.networks(names=[f"^{NETWORK_NAME}$"]))
    key = (facts.engine_id, str(network[0]["Id"]) if network else "")
    if key not in _known_reach:
        for image in images:
            with suppress(SandboxError):
                _known_reach[key] = await _try_reach(engine, image)
                break
    return _known_reach.get(key, Reach())


async def local_images(engine: Engine) -> Sequence[str]:
    """The tagged images of the engine, smallest first."""
    found = await engine.call(lambda client: client.images())
    tagged = [(each["Size"], tag) for each in found for tag in each.get("RepoTags") or () if "<none>" not in tag]
    return [tag for _, tag in sorted(tagged)]


async def _try_reach(engine: Engine, image: str) -> Reach:
    bridge = {"NetworkMode": NETWORK_NAME}
    neighbour = await start_throwaway(engine, image, ["python3", "-c", _LISTEN], host_config=bridge)
    try:
        found = await engine.call(lambda client: client.inspect_container(neighbour))
        address = found["NetworkSettings"]["Networks"][NETWORK_NAME]["IPAddress"]
        targets: dict[str, list[Any]] = {"neighbour": [address, _NEIGHBOUR_PORT], "metadata": ["169.254.169.254", 80]}
        if engine.address.is_local and (lan := lan_gateway(await asyncio.to_thread(_read_routes))):
            targets["lan"] = [lan, 53]
        argv = ["python3", "-c", _REACH, json.dumps(targets)]
        _, output = await run_throwaway(engine, image, argv, host_config=bridge, seconds=20)
    finally:
        await discard(engine, neighbour)
    return Reach(**json.loads(output))


def _read_routes() -> str:
    try:
        return Path("/proc/net/route").read_text()
    except OSError:
        return ""


def lan_gateway(routes: str) -> str:
    """The host's own gateway in the kernel's route table, the one neighbour on its LAN that we know."""
    for line in routes.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 2 and fields[1] == "00000000" and fields[2] != "00000000":
            return socket.inet_ntoa(struct.pack("<L", int(fields[2], 16)))
    return ""


def capabilities(facts: EngineFacts, *, guest: bool) -> frozenset[Capability]:
    """``guest``: images with python3 get our guest, and only these what it gives."""
    kept = {Capability.IMAGES, Capability.USERS, Capability.PORTS, Capability.OWN_PIDS, Capability.TERMINALS}
    if guest:
        kept |= {Capability.DIAL, Capability.SERVICES, Capability.BACKGROUND, Capability.DESKTOP}
    limits = {Capability.MEMORY_LIMIT: facts.memory, Capability.CPU_LIMIT: facts.cpu, Capability.PIDS_LIMIT: facts.pids}
    return frozenset(kept | {name for name, has in limits.items() if has})


def container(facts: EngineFacts) -> str:
    return f"Docker {facts.version} container"


def isolation(facts: EngineFacts, reach: Reach, *, shared: bool, own_uids: bool) -> Isolation:
    """In words, of a sandbox on our bridge; with ``network="none"`` it reaches nothing at all."""
    user = "its own unprivileged user" if own_uids else "your user id, without privileges"
    if facts.rootless:
        user = "root of a rootless engine, which is your user id"
    where = "a directory of this host" if shared else "a volume of the engine"
    metadata = _said(reach.metadata, "REACHABLE", "no answer")
    return Isolation(
        means=f"{container(facts)}, {user}",
        files=f"sees its image and its workspace ({where}) only",
        metadata="cannot see or change the host's files",
        unix_sockets="none of the host's",
        internet=_said(reach.routed, "routed through the host", "no route"),
        host=_said(reach.host, "reachable", "no answer"),
        lan=f"{_said(reach.lan, 'reachable', 'no answer')}; metadata service: {metadata}",
        other_sandboxes=_said(reach.neighbour, "REACHABLE", "not reachable"),
        processes="sees its own only",
        memory=_limit(facts.memory, "per sandbox, no swap" if facts.swap else "per sandbox, swap not limited"),
        cpu=_limit(facts.cpu, "per sandbox"),
        pids=_limit(facts.pids, "per sandbox"),
    )


def _said(found: bool | None, yes: str, no: str) -> str:
    if found is None:
        return "not probed (no image with python3 yet)"
    return yes if found else no


def _limit(kept: bool, how: str) -> str:
    return f"limited {how}" if kept else "NOT LIMITED by this engine"
