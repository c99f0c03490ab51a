"""The engine's records of containers as ours: pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from yaosb_jupyter.choices import Status
from yaosb_jupyter.options import PortMapping
from yaosb_jupyter.tai.runtimes.base import EnvironmentState
from yaosb_jupyter.tai.runtimes.docker.spec import LINK_LABEL, PRIVATE_LABELS

_STATUS = {
    "created": Status.CREATED,
    "running": Status.RUNNING,
    "paused": Status.PAUSED,
    "restarting": Status.STARTING,
    "removing": Status.REMOVING,
    "exited": Status.STOPPED,
    "dead": Status.FAILED,
}
_EVERY_ADDRESS = "0.0.0.0"
_EXITED = re.compile(r"Exited \((\d+)\)")
_EXPECTED_CODES = frozenset({0, 143})
OUT_OF_MEMORY = "out of memory: a process was killed at the memory limit"


def inspected(found: Mapping[str, Any]) -> EnvironmentState:
    """From the engine's answer to an inspection."""
    state = found["State"]
    status = _STATUS.get(state["Status"], Status.FAILED)
    code = int(state["ExitCode"]) if status in (Status.STOPPED, Status.FAILED) else None
    settings = found["NetworkSettings"]
    return EnvironmentState(
        runtime_id=found["Id"],
        name=found["Name"].lstrip("/"),
        status=status,
        labels=shown_labels(found["Config"]["Labels"]),
        image=found["Config"]["Image"],
        reason=end_of(state),
        exit_code=code,
        ip=_address(settings.get("Networks")),
        ports=_inspected_ports(settings.get("Ports") or {}),
        link=(found["Config"]["Labels"] or {}).get(LINK_LABEL, ""),
        created_at=datetime.fromisoformat(found["Created"]),
    )


def listed(found: Mapping[str, Any]) -> EnvironmentState:
    """From the engine's list of containers."""
    status = _STATUS.get(found["State"], Status.FAILED)
    match = _EXITED.match(found.get("Status", ""))
    code = int(match[1]) if match else None
    return EnvironmentState(
        runtime_id=found["Id"],
        name=found["Names"][0].lstrip("/") if found.get("Names") else "",
        status=status,
        labels=shown_labels(found.get("Labels")),
        image=found["Image"],
        reason=ended_reason(code),
        exit_code=code,
        ip=_address(found.get("NetworkSettings", {}).get("Networks")),
        ports=_unique(
            PortMapping(
                container_port=port["PrivatePort"],
                host_port=port["PublicPort"],
                host_ip=port["IP"] or _EVERY_ADDRESS,
                protocol=port["Type"],
            )
            for port in found.get("Ports") or ()
            if port.get("PublicPort")
        ),
        link=(found.get("Labels") or {}).get(LINK_LABEL, ""),
        created_at=datetime.fromtimestamp(found["Created"], UTC),
    )


def end_of(state: Mapping[str, Any]) -> str:
    """Why a container has ended, by the engine's word; empty as for `ended_reason`."""
    if state.get("OOMKilled"):
        return OUT_OF_MEMORY
    return state.get("Error") or ended_reason(None if state["Running"] else int(state["ExitCode"]))


def ended_reason(code: int | None) -> str:
    """Why a main process ended, as its exit code tells; empty where that is how ours ends when it is stopped."""
    if code is None or code in _EXPECTED_CODES:
        return ""
    if code == 137:
        return "the main process was killed (signal 9)"
    return f"the main process ended with exit code {code}"


def shown_labels(labels: Mapping[str, str] | None) -> Mapping[str, str]:
    return {key: value for key, value in (labels or {}).items() if key not in PRIVATE_LABELS}


def _address(networks: Mapping[str, Any] | None) -> str:
    return next((network["IPAddress"] for network in (networks or {}).values() if network.get("IPAddress")), "")


def _inspected_ports(ports: Mapping[str, Any]) -> tuple[PortMapping, ...]:
    mappings = []
    for key, bindings in ports.items():
        number, _, protocol = key.partition("/")
        mappings += [
            PortMapping(
                container_port=int(number),
                host_port=int(binding["HostPort"] or 0),
                host_ip=binding["HostIp"] or _EVERY_ADDRESS,
                protocol=protocol or "tcp",
            )
            for binding in bindings or ()
        ]
    return _unique(mappings)


def _unique(ports: Any) -> tuple[PortMapping, ...]:
    return tuple(sorted(set(ports), key=lambda port: (port.container_port, port.host_port, port.host_ip)))
