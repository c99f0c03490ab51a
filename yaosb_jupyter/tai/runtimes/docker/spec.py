"""What the engine is asked to create: pure, from what a sandbox needs to the request's body."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from yaosb_jupyter.choices import Network
from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.images.catalogue import ENTRYPOINT_LABEL, VNC_LABEL
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec
from yaosb_jupyter.tai.runtimes.docker.scripts import KEEPALIVE, KEEPALIVE_NAME, WITH_ENVIRONMENT
from yaosb_jupyter.tai.runtimes.docker.users import Identity
from yaosb_jupyter.types import WORKDIR

UID_LABEL = "yaosb.uid"
DIRECTORY_LABEL = "yaosb.directory"
LINK_LABEL = "yaosb.link"
PRIVATE_LABELS = frozenset({UID_LABEL, DIRECTORY_LABEL, LINK_LABEL, ENTRYPOINT_LABEL, VNC_LABEL})
"""What we must find on the engine again; not shown to anybody."""

RUN_DIRECTORY = "/run/yaosb"
MAIN_ENVIRONMENT = f"{RUN_DIRECTORY}/environment.sh"
GUEST = f"{RUN_DIRECTORY}/guest.pyz"
LINK_SOCKET = "link.sock"
GUEST_COMMAND = ("python3", "-I", "-S", GUEST)
NETWORK_NAME = "yaosb"
_ROOT_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETUID", "SETGID"]
_GUEST_CONFIG = {"OpenStdin": True, "StdinOnce": True, "StopSignal": "SIGTERM"}
_LOGS = {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "2"}}


class LinkKind(StrEnum):
    """How commands get into a container."""

    SOCKET = "socket"
    """The guest dials a socket of this host."""
    RELAY = "relay"
    """An engine exec carries the guest's link."""
    ENGINE = "engine"
    """No guest, since the image has no python3 that it could run on: each command is an engine exec."""


@dataclass(frozen=True, kw_only=True)
class ImageFacts:
    """What an image says of its main process. ``starter`` is ours, see `ENTRYPOINT_LABEL`; empty in others' images."""

    image_id: str
    starter: str = ""
    vnc_port: int = 0
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What was found out or decided for one container, beyond its spec."""

    image: ImageFacts
    identity: Identity
    shared: bool
    link: LinkKind
    swap_limit: bool = True


def port_of(label: str) -> int:
    """0 for what is none: an image may say anything."""
    return int(label) if label.isdecimal() and 0 < int(label) < 2**16 else 0


def volume_name(uid: str) -> str:
    return f"yaosb-{uid.lower()}"


IMAGES_OWN = ("image",)


def guest_is_main(spec: EnvironmentSpec, link: LinkKind) -> bool:
    """Else it is started beside the image's own main process, or not at all."""
    return link is not LinkKind.ENGINE and spec.cmd != IMAGES_OWN


def needs_environment_script(spec: EnvironmentSpec, link: LinkKind) -> bool:
    """Whether the main process is someone else's, to be given the user's environment by a wrapper."""
    return bool(spec.cmd and spec.env) and not guest_is_main(spec, link)


def main_process(spec: EnvironmentSpec, image: ImageFacts, link: LinkKind) -> tuple[str, ...]:
    """The container's main process, entrypoint included. The guest is told of ``cmd``; here it is to be found again."""
    if guest_is_main(spec, link):
        return (*GUEST_COMMAND, spec.uid, *spec.cmd)
    starter = (image.starter,) if image.starter else ()
    if not spec.cmd:
        return (*starter, "sh", "-c", KEEPALIVE, KEEPALIVE_NAME)
    command = (*image.entrypoint, *image.command) if spec.cmd == IMAGES_OWN else (*starter, *spec.cmd)
    if not command:
        raise InvalidOptionError(f"image {spec.image!r} has no command of its own", hint="give cmd")
    if spec.env:
        return ("sh", "-c", WITH_ENVIRONMENT, "yaosb-main", MAIN_ENVIRONMENT, *command)
    return command


def check(spec: EnvironmentSpec) -> None:
    """Raises `InvalidOptionError` for what this runtime cannot give."""
    if spec.network is Network.ALLOWLIST:
        raise InvalidOptionError(
            "network='allowlist' is not available on the Docker runtime yet", hint="accepted: none, bridge"
        )
    if spec.ports and spec.network is Network.NONE:
        raise InvalidOptionError("ports cannot be published with network='none'", hint="use network='bridge'")
    if spec.gpus and spec.gpus != "all" and not spec.gpus.isdigit():
        raise InvalidOptionError(f"gpus={spec.gpus!r} is not valid", hint='accepted: "all" or a number')
    if taken := PRIVATE_LABELS & spec.labels.keys():
        raise InvalidOptionError(f"labels: {min(taken)!r} is reserved", hint="choose another name")


def create_body(spec: EnvironmentSpec, plan: Plan) -> dict[str, Any]:
    """The body of the engine's request to create a container."""
    main = main_process(spec, plan.image, plan.link)
    labels = {
        **spec.labels,
        UID_LABEL: str(plan.identity.uid),
        DIRECTORY_LABEL: str(spec.directory),
        LINK_LABEL: plan.link.value,
    }
    return {
        "Image": spec.image,
        "Entrypoint": list(main[:1]),
        "Cmd": list(main[1:]),
        "User": f"{plan.identity.uid}:{plan.identity.gid}",
        "WorkingDir": spec.workdir,
        "Labels": labels,
        "StopTimeout": max(1, round(spec.stop_timeout)),
        "ExposedPorts": {f"{port.container_port}/{port.protocol}": {} for port in spec.ports},
        "HostConfig": _host_config(spec, plan, labels),
        **(_GUEST_CONFIG if guest_is_main(spec, plan.link) else {}),
    }


def _host_config(spec: EnvironmentSpec, plan: Plan, labels: Mapping[str, str]) -> dict[str, Any]:
    config: dict[str, Any] = {
        "Init": not guest_is_main(spec, plan.link),  # the guest reaps
        "CapDrop": ["ALL"],
        "CapAdd": _ROOT_CAPABILITIES if plan.identity.is_root else [],
        "SecurityOpt": ["no-new-privileges"],
        "NetworkMode": NETWORK_NAME if spec.network is Network.BRIDGE else "none",
        "PortBindings": _port_bindings(spec),
        "Mounts": _mounts(spec, plan, labels),
        "LogConfig": _LOGS,
        "RestartPolicy": {"Name": "no"},
    }
    if spec.memory:
        config["Memory"] = spec.memory
        if plan.swap_limit:
            config["MemorySwap"] = spec.memory
    if spec.cpus:
        config["NanoCpus"] = round(spec.cpus * 1e9)
    if spec.pids:
        config["PidsLimit"] = spec.pids
    if spec.gpus:
        config["DeviceRequests"] = [{"Count": -1 if spec.gpus == "all" else int(spec.gpus), "Capabilities": [["gpu"]]}]
    return config


def _port_bindings(spec: EnvironmentSpec) -> dict[str, Any]:
    bindings: dict[str, list[dict[str, str]]] = {}
    for port in spec.ports:
        host = {"HostIp": port.host_ip, "HostPort": str(port.host_port or "")}
        bindings.setdefault(f"{port.container_port}/{port.protocol}", []).append(host)
    return bindings


def _mounts(spec: EnvironmentSpec, plan: Plan, labels: Mapping[str, str]) -> Sequence[dict[str, Any]]:
    if not plan.shared:
        source = {"Source": volume_name(spec.uid), "VolumeOptions": {"Labels": dict(labels)}}
        return [{"Type": "volume", "Target": WORKDIR, **source}]
    return [
        {"Type": "bind", "Source": str(spec.workspace), "Target": WORKDIR},
        {"Type": "bind", "Source": str(spec.directory / "run"), "Target": RUN_DIRECTORY, "ReadOnly": True},
    ]


def own_workspace(spec: EnvironmentSpec) -> bool:
    """Whether the workspace is the sandbox's own, not a directory that its user has named."""
    return spec.workspace in (Path(), spec.directory) or spec.workspace.is_relative_to(spec.directory)


def working_directory(workdir: str, cwd: str) -> str:
    """Where a command runs: ``cwd``, relative to the environment's working directory."""
    return posixpath.normpath(posixpath.join(workdir or WORKDIR, cwd)) if cwd else ""
