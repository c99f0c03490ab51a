"""The browser's end of a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import h11

from yaosb_jupyter.tai.http import MAX_HEAD, Headers, value_of
from yaosb_jupyter.tai.proxy.headers import POLICY, Header, has_two_lengths
from yaosb_jupyter.tai.proxy.pages import Page

CHUNK = 2**18
_LINGER = 2.0
_LINGER_BYTES = 2**22


class ClientGone(Exception):  # noqa: N818 - not an error
    """The browser has broken its connection."""


class Client:
    """Gives the requests of one connection and takes their responses. Raises `ClientGone` where that has ended, and
    `h11.RemoteProtocolError` for what is no HTTP."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._request: h11.Request | None = None

    async def request(self) -> h11.Request | None:
        """The next request, or None when there is none."""
        self._request = None
        event = await self.receive()
        if not isinstance(event, h11.Request):
            return None
        if has_two_lengths(event.headers):
            raise h11.RemoteProtocolError("two ways to tell the length")
        self._request = event
        return event

    async def receive(self) -> h11.Event | type[h11.PAUSED]:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._read())
        return event  # type: ignore[return-value]

    async def ends(self) -> bool:
        """True at the end of what it asks; False when there is more to read, which waits for the next request."""
        data = await self._read()
        if data:
            self._http.receive_data(data)
        return not data

    async def send(self, event: h11.Event) -> None:
        """Waits while the browser does not read."""
        if data := self._http.send(event):
            await self.write(data)

    async def refuse(self, page: Page) -> None:
        """Answers what cannot be understood; nothing behind it can be, so no request follows."""
        await self.respond(page, [(b"connection", b"close")])

    async def respond(self, page: Page, headers: Sequence[Header] = ()) -> None:
        """Answers with a page of ours: HTML where that is wanted, else text."""
        wants_html = "text/html" in value_of(self._headers, b"accept")
        body = (page.html() if wants_html else page.text()).encode()
        kind = b"text/html; charset=utf-8" if wants_html else b"text/plain; charset=utf-8"
        await self.answer(page.status, [(b"content-type", kind), *_OURS, *headers], body)

    async def answer(self, status: int, headers: list[Header], body: bytes = b"") -> None:
        """Answers without a sandbox."""
        length = [] if status == 204 else [(b"content-length", b"%d" % len(body))]
        await self.send(h11.Response(status_code=status, headers=[*headers, *length]))
        if body and (self._request is None or self._request.method != b"HEAD"):
            await self.send(h11.Data(data=body))
        await self.send(h11.EndOfMessage())

    @property
    def _headers(self) -> Headers:
        return self._request.headers if self._request is not None else []

    @property
    def may_respond(self) -> bool:
        """No head of a response was sent yet."""
        return self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE)

    def next_cycle(self) -> bool:
        """Whether another request may follow on this connection."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    async def read_raw(self) -> bytes:
        """Bytes after a switch of protocols; ``b""`` at the end."""
        return await self._read()

    @property
    def trailing(self) -> bytes:
        """What came behind the request that asked for the switch."""
        return self._http.trailing_data[0]

    async def write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise ClientGone from error

    def write_eof(self) -> None:
        with suppress(OSError):
            if not self._writer.is_closing():
                self._writer.write_eof()

    async def _read(self) -> bytes:
        try:
            return await self._reader.read(CHUNK)
        except OSError as error:
            raise ClientGone from error

    async def linger(self) -> None:
        """Lets the browser read the last response though it is still sending what nobody wants."""
        self.write_eof()
        left = _LINGER_BYTES
        with suppress(ClientGone, TimeoutError):
            async with asyncio.timeout(_LINGER):
                while left > 0 and (data := await self._read()):
                    left -= len(data)


_OURS: list[Header] = [
    *((name, value) for name, value in POLICY if name != b"content-security-policy"),
    (b"content-security-policy", b"sandbox; default-src 'none'; style-src 'unsafe-inline'"),
    (b"cache-control", b"no-store"),
]
