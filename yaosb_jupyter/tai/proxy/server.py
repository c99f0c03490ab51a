"""The listener: on the loopback, started when it is first needed."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

import h11

from yaosb_jupyter.errors import InvalidOptionError, NotAvailableError, SandboxError, UnavailableError
from yaosb_jupyter.tai.http import HttpStream, value_of
from yaosb_jupyter.tai.proxy import pages
from yaosb_jupyter.tai.proxy.client import CHUNK, Client, ClientGone
from yaosb_jupyter.tai.proxy.exchange import forward
from yaosb_jupyter.tai.proxy.headers import POLICY, Mount, is_preflight, preflight_headers
from yaosb_jupyter.tai.proxy.tickets import Target, Ticket, Tickets
from yaosb_jupyter.tai.sockets import connect
from yaosb_jupyter.types import ProxyHealth

HOST = "127.0.0.1"
HEALTH_PATH = "/healthz"
MAX_CONNECTIONS = 512
_IDLE = 75.0
"""Seconds between the requests of one connection, and for the head of one."""
_HEALTH_PATIENCE = 5.0
_AGAIN = "open the manager again"
_LOOPBACK: Final = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.IGNORECASE)
_ABSOLUTE: Final = re.compile(rb"http://([^/?#]*)(.*)", re.IGNORECASE)
_TARGET: Final = re.compile(rb"/([A-Za-z0-9_-]{43})(?:(/[^?#]*)?(\?.*)?)")


class Proxy:
    """Gives ports of sandboxes URLs that work on this machine. ``clock`` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._tickets = Tickets(clock)
        self._server: asyncio.Server | None = None
        self._starting = asyncio.Lock()
        self._closed = False
        self._connections: set[asyncio.Task[None]] = set()
        self._waiting: dict[asyncio.Task[None], None] = {}

    async def url(self, target: Target, path: str = "/") -> str:
        """For whoever holds it, until it expires or `revoke`. The same for one port until then."""
        where = quoted(path)
        origin = await self._origin()
        return f"{origin}/{self._tickets.issue(target).token}{where}"

    def revoke(self, uid: str) -> None:
        """Of one sandbox: its URLs lead nowhere from now on, and what goes on by them ends."""
        self._tickets.revoke(uid)

    async def healthz(self) -> ProxyHealth:
        """Asks the listener over its own socket. Raises `UnavailableError` where it does not answer."""
        origin = await self._origin()
        try:
            async with asyncio.timeout(_HEALTH_PATIENCE):
                status = await _status(origin)
        except (TimeoutError, SandboxError, h11.RemoteProtocolError) as error:
            raise UnavailableError(f"the proxy at {origin} does not answer: {error!r}", hint=_AGAIN) from error
        if status != 200:
            raise UnavailableError(f"the proxy at {origin} answers with status {status}", hint=_AGAIN)
        return ProxyHealth(address=origin, links=len(self._tickets))

    async def close(self) -> None:
        """Ends the listener and all that goes on. Idempotent."""
        self._closed = True
        async with self._starting:
            server, self._server = self._server, None
        if server is not None:
            server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _origin(self) -> str:
        async with self._starting:
            if self._closed:
                raise NotAvailableError("the proxy is closed", hint=_AGAIN)
            if self._server is None:
                self._server = await asyncio.start_server(self._accept, HOST, 0, limit=CHUNK)
            return f"http://{HOST}:{self._server.sockets[0].getsockname()[1]}"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        client = Client(reader, writer)
        try:
            if len(self._connections) > MAX_CONNECTIONS and not self._make_room():
                await client.respond(pages.TOO_MANY)
                return
            await self._serve(client, task)
        except (ClientGone, asyncio.CancelledError):
            pass  # its end, or ours
        finally:
            self._connections.discard(task)
            writer.close()

    def _make_room(self) -> bool:
        """Ends the connection that has waited longest for a request: whoever is silent keeps nobody out."""
        oldest = next(iter(self._waiting), None)
        if oldest is None:
            return False
        del self._waiting[oldest]
        oldest.cancel()
        return True

    async def _request(self, client: Client, task: asyncio.Task[None]) -> h11.Request | None:
        self._waiting[task] = None
        try:
            async with asyncio.timeout(_IDLE):
                return await client.request()
        finally:
            self._waiting.pop(task, None)

    async def _serve(self, client: Client, task: asyncio.Task[None]) -> None:
        """Requests one after the other."""
        again = True
        while again:
            try:
                request = await self._request(client, task)
            except TimeoutError:
                return
            except h11.RemoteProtocolError as error:
                await client.refuse(pages.HEAD_TOO_LARGE if error.error_status_hint == 431 else pages.BAD_REQUEST)
                break
            if request is None:
                return
            await self._answer(client, request)
            again = client.next_cycle()
        await client.linger()

    async def _answer(self, client: Client, request: h11.Request) -> None:
        host, target = _asked(request)
        if not _LOOPBACK.fullmatch(host):
            return await client.respond(pages.STRANGE_HOST)
        if target == HEALTH_PATH.encode():
            return await client.answer(200, [(b"content-type", b"application/json")], b'{"status": "ok"}\n')
        match = _TARGET.fullmatch(target)
        ticket = self._tickets.find(match[1].decode()) if match else None
        if match is None or ticket is None:
            return await client.respond(pages.UNKNOWN)
        if is_preflight(request.method, request.headers):
            return await client.answer(204, preflight_headers(request.headers))
        query = match[3] or b""
        if not match[2]:
            return await client.answer(308, [*POLICY, (b"location", b"/" + match[1] + b"/" + query)])
        mount = Mount(origin=f"http://{host}", prefix=f"/{ticket.token}", port=ticket.target.port)
        return await self._forward(client, request, match[2] + query, ticket, mount)

    async def _forward(self, client: Client, request: h11.Request, path: bytes, ticket: Ticket, mount: Mount) -> None:
        task = asyncio.current_task()
        assert task is not None
        ticket.users.add(task)
        try:
            await (ticket.target.serve or forward)(client, request, path, ticket.target, mount)
        finally:
            ticket.users.discard(task)


def _asked(request: h11.Request) -> tuple[str, bytes]:
    """The host and the path that it is for. Where the target is absolute, the header says nothing (RFC 9112, 3.2.2)."""
    if whole := _ABSOLUTE.fullmatch(request.target):
        return whole[1].decode("latin-1"), whole[2] or b"/"
    return value_of(request.headers, b"host"), request.target


async def _status(origin: str) -> int:
    host = origin.removeprefix("http://")
    async with await connect(int(host.rpartition(":")[2]), sandbox="") as stream:
        http = HttpStream(stream)
        await http.send(h11.Request(method="GET", target=HEALTH_PATH, headers=[("Host", host)]))
        await http.send(h11.EndOfMessage())
        return (await http.response()).status_code


def quoted(path: str) -> str:
    """A path with perhaps a query and a fragment as it stands in a URL. Raises `InvalidOptionError`."""
    if not isinstance(path, str) or any(ord(char) < 0x20 or ord(char) == 0x7F for char in path):
        raise InvalidOptionError(f"path={path!r} is not valid", hint='accepted: as in a URL, "/lab?reset=1"')
    try:
        return quote(path if path.startswith("/") else f"/{path}", safe="/?#[]@!$&'()*+,;=:%~")
    except UnicodeEncodeError as error:
        raise InvalidOptionError(f"path={path!r} is not valid", hint="accepted: text") from error
