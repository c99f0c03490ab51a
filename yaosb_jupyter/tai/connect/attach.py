"""Connections to what listens in a sandbox, as callers ask for them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypedDict

from yaosb_jupyter.checks import check_flag, check_mapping, check_number, check_text, several
from yaosb_jupyter.errors import InvalidOptionError, PortUnavailableError
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.connect.base import AsyncAttachment, Endpoint
from yaosb_jupyter.tai.proxy.server import quoted
from yaosb_jupyter.units import DurationLike, SizeLike, parse_duration, parse_size

Protocol = Literal["ws", "sse", "tcp"]
PROTOCOLS: Final = ("ws", "sse", "tcp")
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_OURS: Final = frozenset(
    {"connection", "content-length", "host", "transfer-encoding", "upgrade", "sec-websocket-key"}
    | {"sec-websocket-version", "sec-websocket-extensions", "sec-websocket-protocol"}
)
_LONGEST: Final = 24 * 3600.0


class AttachFields(TypedDict, total=False):
    """The keyword arguments of ``attach``.

    ``path`` with a query if need be; ``headers`` of the request; ``subprotocols`` of a WebSocket, the preferred one
    first; ``timeout`` until it is connected ("30s"); ``max_message`` of one message or event ("64m");
    ``reconnect=False`` ends an event stream with its connection.
    """

    path: str
    headers: Mapping[str, str]
    subprotocols: Sequence[str]
    timeout: DurationLike
    max_message: SizeLike
    reconnect: bool


async def attach(
    dial: Callable[[], Awaitable[ByteStream]], sandbox: str, port: int, protocol: str, fields: AttachFields
) -> AsyncAttachment[Any]:
    """See `AsyncSandbox.attach`. ``dial`` connects to that port."""
    opener = _opener(protocol)
    endpoint = _endpoint(dial, sandbox, port, fields)
    scope = asyncio.timeout(endpoint.timeout)
    try:
        async with scope:
            return await opener(endpoint)
    except TimeoutError as error:
        if not scope.expired():
            raise
        raise PortUnavailableError(
            f"port {port}: it did not answer within {endpoint.timeout:g} s", sandbox=sandbox, hint="is the server busy?"
        ) from error


def _opener(protocol: object) -> Callable[[Endpoint], Awaitable[AsyncAttachment[Any]]]:
    match protocol:  # each is loaded when it is first used
        case "ws":
            from yaosb_jupyter.tai.connect.websocket import open_websocket

            return open_websocket
        case "sse":
            from yaosb_jupyter.tai.connect.events import open_events

            return open_events
        case "tcp":
            from yaosb_jupyter.tai.connect.tcp import open_tcp

            return open_tcp
    raise InvalidOptionError(f"protocol={protocol!r} is not valid", hint="accepted: " + ", ".join(PROTOCOLS))


def _endpoint(dial: Callable[[], Awaitable[ByteStream]], sandbox: str, port: int, fields: AttachFields) -> Endpoint:
    if unknown := sorted(set(fields) - set(AttachFields.__annotations__)):
        accepted = ", ".join(sorted(AttachFields.__annotations__))
        raise InvalidOptionError(f"unknown option {unknown[0]!r}", hint=f"accepted: {accepted}")
    check_number("port", port, 1, 65535)
    given: dict[str, Any] = {"path": quoted(fields.get("path", "/")).partition("#")[0]}
    if "headers" in fields:
        given["headers"] = _headers(fields["headers"])
    if "subprotocols" in fields:
        given["subprotocols"] = tuple(map(_subprotocol, several("subprotocols", fields["subprotocols"])))
    if "timeout" in fields:
        given["timeout"] = parse_duration(fields["timeout"], "timeout") or _LONGEST
    if "max_message" in fields:
        given["max_message"] = parse_size(fields["max_message"], "max_message")
    if "reconnect" in fields:
        check_flag("reconnect", fields["reconnect"])
        given["reconnect"] = fields["reconnect"]
    return Endpoint(sandbox=sandbox, port=port, dial=dial, **given)


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    check_mapping("headers", headers)
    for name, value in headers.items():
        check_text("headers", name)
        check_text(f"headers: {name}", value)
        if not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value) or not value.isascii():
            raise InvalidOptionError(f"headers: {name!r} is not valid", hint="accepted: one line of ASCII text each")
        if name.lower() in _OURS:
            raise InvalidOptionError(f"headers: {name!r} is set by the connection itself", hint="leave it out")
    return dict(headers)


def _subprotocol(name: object) -> str:
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise InvalidOptionError(f"subprotocols: {name!r} is not valid", hint="accepted: names without spaces")
    return name
