"""An event stream that is connected again when it was lost, as a browser's ``EventSource`` is."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NoReturn
from urllib.parse import urljoin, urlsplit, urlunsplit

import h11

from yaosb_jupyter.errors import PortUnavailableError, ProtocolError, SandboxError
from yaosb_jupyter.tai.connect.base import NORMAL, AsyncAttachment, Endpoint
from yaosb_jupyter.tai.connect.sse import EventParser, EventTooLarge
from yaosb_jupyter.tai.http import HttpStream, NoAnswer, value_of
from yaosb_jupyter.tai.proxy.server import quoted
from yaosb_jupyter.types import ServerEvent

RETRY = 3.0
"""Seconds before it is connected again, unless the server says otherwise."""
MAX_RETRY = 60.0
ATTEMPTS = 6
"""So often in a row it is tried, each time after twice as long."""
MAX_REDIRECTS = 20
"""As browsers' fetch follows."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_BODY_SHOWN = 500
_BODY_PATIENCE = 2.0


async def open_events(endpoint: Endpoint) -> EventAttachment:
    """Raises `PortUnavailableError`, `ProtocolError` for what is no event stream."""
    attachment = EventAttachment(endpoint)
    await attachment.connect()
    return attachment


class EventAttachment(AsyncAttachment[ServerEvent]):
    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint.url("http"))
        self._endpoint = endpoint
        self._parser = EventParser(max_size=endpoint.max_message)
        self._http: HttpStream | None = None
        self._retry = RETRY
        self._events: deque[ServerEvent] = deque()
        self._closed = asyncio.Event()
        self._ended = False
        self._close_reason = ""

    @property
    def close_reason(self) -> str:
        return self._close_reason

    async def read(self) -> ServerEvent | None:
        while not self._events and not self._ended and not self._closed.is_set():
            data = await self._receive()
            if data:
                self._take(data)
            elif not self._closed.is_set():
                await self._lost()
        return self._events.popleft() if self._events and not self._closed.is_set() else None

    async def write(self, data: str | bytes) -> NoReturn:  # noqa: ARG002
        raise ProtocolError(
            "an event stream goes one way: nothing can be written to it",
            sandbox=self._endpoint.sandbox,
            hint="attach by WebSocket (protocol='ws') to what listens for both, or send a request to proxy(port)",
        )

    async def close(self, code: int = NORMAL, reason: str = "") -> None:  # noqa: ARG002 - an event stream tells neither
        if not self._closed.is_set():
            self._closed.set()
            self._close_reason = self._close_reason or reason or "closed here"
            await self._let_go()

    async def connect(self) -> None:
        """Asks for the stream, from the last event on; a server that has none any more ends it (status 204)."""
        path = self._endpoint.path
        for _ in range(MAX_REDIRECTS + 1):
            stream = await self._endpoint.dial()
            self._http = HttpStream(stream)
            try:
                elsewhere = await self._ask(self._http, path)
            except BaseException as error:
                await self._let_go()
                if isinstance(error, NoAnswer):
                    raise self._endpoint.unanswered() from error
                if isinstance(error, h11.RemoteProtocolError | h11.LocalProtocolError):
                    raise self._protocol_error(f"no HTTP: {error}") from error
                raise
            if elsewhere is None:
                return
            await self._let_go()
            path = elsewhere
        raise self._protocol_error(f"more than {MAX_REDIRECTS} redirects")

    async def _ask(self, http: HttpStream, path: str) -> str | None:
        """None where the stream is there, or no more; else where to ask for it."""
        await http.send(h11.Request(method="GET", target=path, headers=self._headers()))
        await http.send(h11.EndOfMessage())
        head = await http.response()
        if head.status_code == 204:
            await self._end("the server has no more events (status 204)")
            return None
        location = value_of(head.headers, b"location")
        if head.status_code in _REDIRECTS and location:
            return self._below_port(path, location)
        kind = value_of(head.headers, b"content-type").partition(";")[0].strip().lower()
        if head.status_code != 200:
            raise self._protocol_error(f"status {head.status_code}", await _beginning(http))
        if kind != "text/event-stream":
            raise self._protocol_error(f"content of type {kind or 'unknown'}", await _beginning(http))
        self._parser = EventParser(last_event_id=self._parser.last_event_id, max_size=self._endpoint.max_message)
        return None

    def _below_port(self, path: str, location: str) -> str:
        """Raises `ProtocolError` for what leads away from this server."""
        try:
            found = urlsplit(urljoin(f"http://{self._endpoint.host}{path}", location))
        except ValueError as error:
            raise self._protocol_error(f"it leads to {location[:_BODY_SHOWN]}, which is no address") from error
        own = {self._endpoint.host, f"127.0.0.1:{self._endpoint.port}", f"[::1]:{self._endpoint.port}"}
        if found.scheme != "http" or found.netloc not in own:
            raise self._protocol_error(f"it leads to {location[:_BODY_SHOWN]}, away from this port")
        return quoted(urlunsplit(("", "", found.path or "/", found.query, "")))

    def _headers(self) -> list[tuple[str, str]]:
        given = {name.lower(): value for name, value in self._endpoint.headers.items()}
        headers = {"host": self._endpoint.host, "accept": "text/event-stream", "cache-control": "no-store", **given}
        if self._parser.last_event_id:
            headers["last-event-id"] = self._parser.last_event_id
        return [*headers.items(), ("connection", "close")]

    async def _receive(self) -> bytes:
        """Bytes of the stream; ``b""`` where it has ended or broke."""
        if self._http is None:
            return b""
        try:
            return await self._http.body()
        except (PortUnavailableError, h11.RemoteProtocolError):
            return b""

    def _take(self, data: bytes) -> None:
        try:
            self._events.extend(self._parser.feed(data))
        except EventTooLarge as error:
            self._ended = True
            raise self._protocol_error(str(error)) from error
        if self._parser.retry is not None:
            self._retry = min(self._parser.retry, MAX_RETRY)

    async def _lost(self) -> None:
        """Connects again, unless that was not wanted."""
        await self._let_go()
        if not self._endpoint.reconnect:
            await self._end("the server has ended the stream")
            return
        wait = self._retry
        for attempt in range(1, ATTEMPTS + 1):
            if await self._closes_within(wait):
                return
            try:
                async with asyncio.timeout(self._endpoint.timeout):
                    await self.connect()
                return
            except (PortUnavailableError, TimeoutError) as error:
                if attempt == ATTEMPTS:
                    raise self._given_up() from error
            except SandboxError:
                self._ended = True
                raise
            wait = min(max(wait, 0.1) * 2, MAX_RETRY)

    def _given_up(self) -> PortUnavailableError:
        self._ended = True
        return PortUnavailableError(
            f"port {self._endpoint.port}: the event stream was lost, and {ATTEMPTS} attempts to reach it again failed",
            sandbox=self._endpoint.sandbox,
            hint="is the server still running there?",
        )

    async def _closes_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._closed.wait()
        except TimeoutError:
            return False
        return True

    async def _end(self, reason: str) -> None:
        self._ended = True
        self._close_reason = reason
        await self._let_go()

    async def _let_go(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.stream.aclose()

    def _protocol_error(self, what: str, body: str = "") -> ProtocolError:
        said = f"; it said: {body}" if body else ""
        return ProtocolError(
            f"port {self._endpoint.port} gives no event stream at {self._endpoint.path}: {what}{said}",
            sandbox=self._endpoint.sandbox,
            hint="look at path and headers",
        )


async def _beginning(http: HttpStream) -> str:
    """Of a body that is an explanation."""
    data = b""
    try:
        async with asyncio.timeout(_BODY_PATIENCE):
            while len(data) < _BODY_SHOWN and (piece := await http.body()):
                data += piece
    except (TimeoutError, SandboxError, h11.RemoteProtocolError):
        pass  # what there is
    return data[:_BODY_SHOWN].decode(errors="replace").strip()
