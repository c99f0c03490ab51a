"""Ports of containers that the engine publishes on this host."""

from __future__ import annotations

from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.runtimes.base import EnvironmentState
from yaosb_jupyter.tai.sockets import LOOPBACK, connect

_ANY = frozenset({"0.0.0.0", "::"})


async def dial_published(state: EnvironmentState, port: int, *, sandbox: str) -> ByteStream | None:
    """A connection to where ``port`` is published, None where it is not. Raises `PortUnavailableError`."""
    for mapping in state.ports:
        if mapping.container_port == port and mapping.protocol == "tcp" and mapping.host_port:
            hosts = LOOPBACK if mapping.host_ip in _ANY else (mapping.host_ip,)
            return await connect(mapping.host_port, sandbox=sandbox, hosts=hosts)
    return None
