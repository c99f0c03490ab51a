"""What a desktop's path answers: the page, its files, and the WebSocket that the page opens."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Final

import h11

from yaosb_jupyter.choices import VncStatus
from yaosb_jupyter.errors import PortUnavailableError, SandboxError
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.http import value_of
from yaosb_jupyter.tai.proxy import pages
from yaosb_jupyter.tai.proxy.client import Client
from yaosb_jupyter.tai.proxy.headers import Header, Mount, is_websocket
from yaosb_jupyter.tai.proxy.tickets import Target
from yaosb_jupyter.tai.runtimes.base import Runtime
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.types import Desktop

WEBSOCKET_PATH: Final = "websocket"
_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}

_VIEWER = Path(__file__).parent / "viewer"
_OWN_PAGE = re.compile(r"https?://(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.IGNORECASE)
_STRANGE_PAGE = pages.Page(
    status=403,
    title="Not from that page",
    message="A desktop is shown to pages of this machine, and to programs.",
)
_NO_PAGE = pages.Page(status=404, title="There is no such page", message="A desktop has one only.")
_SCRIPTS = b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self' ws:; img-src data: blob:"
_POLICY: Final[list[Header]] = [
    (b"content-security-policy", _SCRIPTS + b"; base-uri 'none'; form-action 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


async def serve(client: Client, request: h11.Request, path: bytes, target: Target, _mount: Mount) -> None:
    """Answers one request. Raises `ClientGone`."""
    name = path.decode("ascii", "replace").partition("?")[0].lstrip("/")
    if name == WEBSOCKET_PATH:
        await _show(client, request, target)
        return
    file = (await in_thread(_files)).get(name or "index.html")
    if file is None or request.method not in (b"GET", b"HEAD"):
        await client.respond(_NO_PAGE)
        return
    kind = _KINDS.get(file.suffix, "text/plain")
    body = await in_thread(file.read_bytes)
    await client.answer(200, [(b"content-type", f"{kind}; charset=utf-8".encode()), *_POLICY], body)


async def _show(client: Client, request: h11.Request, target: Target) -> None:
    origin = value_of(request.headers, b"origin")
    if origin and not _OWN_PAGE.fullmatch(origin):
        await client.respond(_STRANGE_PAGE)
        return
    if not is_websocket(request.headers):
        await client.respond(pages.BAD_REQUEST)
        return
    try:
        stream = await target.dial()
    except SandboxError as error:
        await client.respond(pages.for_error(error, target.port))
        return
    from yaosb_jupyter.tai.vnc.bridge import bridge

    async with stream:
        await bridge(client, request, stream)


@cache
def _files() -> dict[str, Path]:
    """By their paths below the page, which is all that can be asked for."""
    found = [path for path in _VIEWER.rglob("*") if path.is_file()]
    return {path.relative_to(_VIEWER).as_posix(): path for path in found}


async def look(runtime: Runtime, runtime_id: str) -> tuple[VncStatus, int]:
    """Whether a running environment's desktop shows itself, and at which port inside. Raises as `Runtime.dial`."""
    port = await runtime.vnc_port(runtime_id)
    if not port:
        return VncStatus.NOT_SUPPORTED, 0
    try:
        async with await runtime.dial(runtime_id, port) as stream:
            return (VncStatus.READY if await _greets(stream) else VncStatus.STARTING), port
    except PortUnavailableError:
        return VncStatus.STARTING, port


async def _greets(stream: ByteStream) -> bool:
    """Whether a VNC server is there, by its first word."""
    return (await stream.receive()).startswith(b"RFB ")


async def shown(status: VncStatus, link: Callable[[], Awaitable[str]]) -> Desktop:
    """``link`` makes the URL of the page, for a desktop that is or will be there."""
    if status not in (VncStatus.STARTING, VncStatus.READY):
        return Desktop(status=status)
    page = await link()
    return Desktop(status=status, page=page, url=page.replace("http", "ws", 1) + WEBSOCKET_PATH)
