"""What a desktop's path answers: the page, its files, and the WebSocket that the page opens."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

import h11

from yaosb_jupyter.errors import PortUnavailableError, SandboxError
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.http import value_of
from yaosb_jupyter.tai.proxy import pages
from yaosb_jupyter.tai.proxy.client import Client
from yaosb_jupyter.tai.proxy.headers import Header, Mount, is_websocket
from yaosb_jupyter.tai.proxy.tickets import Target
from yaosb_jupyter.tai.threads import in_thread

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


async def greets(stream: ByteStream) -> bool:
    """Whether a VNC server is there, by its first word."""
    try:
        return (await stream.receive()).startswith(b"RFB ")
    except PortUnavailableError:
        return False
