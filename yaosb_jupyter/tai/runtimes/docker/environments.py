"""What we must know of a container beyond the engine's state: found there and in its directory, kept in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from yaosb_jupyter.images.catalogue import ENTRYPOINT_LABEL, VNC_LABEL
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.scripts import KEEPALIVE_NAME
from yaosb_jupyter.tai.runtimes.docker.spec import DIRECTORY_LABEL, GUEST, LINK_LABEL, LinkKind, port_of
from yaosb_jupyter.tai.runtimes.docker.workspace import load_environment
from yaosb_jupyter.types import WORKDIR


@dataclass(frozen=True, kw_only=True)
class EnvironmentFacts:
    """``own_main``: the main process is our keep-alive; ``guest_main``: it is our guest, which runs ``starter`` (see
    `ENTRYPOINT_LABEL`) and ``cmd``.

    ``env`` goes to every command; ``directory`` is the sandbox's on this host; ``volume`` is the workspace's, empty
    where that is a directory of this host.
    """

    image: str
    own_main: bool
    uid: int
    gid: int
    directory: Path = Path()
    link: LinkKind = LinkKind.ENGINE
    guest_main: bool = False
    starter: str = ""
    vnc_port: int = 0
    cmd: tuple[str, ...] = ()
    workdir: str = WORKDIR
    env: Mapping[str, str] = field(default_factory=dict)
    volume: str = ""


class Environments:
    """The facts of each container."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._facts: dict[str, EnvironmentFacts] = {}

    def remember(self, runtime_id: str, facts: EnvironmentFacts) -> None:
        self._facts[runtime_id] = facts

    def forget(self, runtime_id: str) -> None:
        self._facts.pop(runtime_id, None)

    async def get(self, runtime_id: str) -> EnvironmentFacts:
        """Raises `NotFoundError`."""
        if runtime_id not in self._facts:
            self._facts[runtime_id] = await self._find(runtime_id)
        return self._facts[runtime_id]

    async def _find(self, runtime_id: str) -> EnvironmentFacts:
        found = await self._engine.call(lambda client: client.inspect_container(runtime_id), sandbox=runtime_id)
        config = found["Config"]
        labels = config.get("Labels") or {}
        directory = labels.get(DIRECTORY_LABEL, "")
        command = tuple(config.get("Cmd") or ())
        guest_main = GUEST in command
        uid, _, gid = config["User"].partition(":")
        volumes = [
            mount["Name"]
            for mount in found.get("Mounts") or ()
            if mount["Type"] == "volume" and mount["Destination"] == WORKDIR
        ]
        return EnvironmentFacts(
            image=found["Image"],
            own_main=KEEPALIVE_NAME in command,
            directory=Path(directory),
            link=LinkKind(labels.get(LINK_LABEL, LinkKind.ENGINE)),
            guest_main=guest_main,
            starter=labels.get(ENTRYPOINT_LABEL, ""),
            vnc_port=port_of(labels.get(VNC_LABEL, "")),
            cmd=command[command.index(GUEST) + 2 :] if guest_main else (),
            uid=int(uid or 0),
            gid=int(gid or 0),
            workdir=config.get("WorkingDir") or WORKDIR,
            env=await asyncio.to_thread(load_environment, Path(directory)) if directory else {},
            volume=volumes[0] if volumes else "",
        )
