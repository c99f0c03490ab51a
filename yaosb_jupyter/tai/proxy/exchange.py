"""One request passed on, and its response passed back, whoever listens and wherever it leads.

Nothing is held back: what comes is sent on at once, and whoever does not read makes the other side wait. After a switch
of protocols bytes are carried as they are, so WebSockets keep their frames, of any size, their subprotocols and codes.
"""

from __future__ import annotations

import asyncio

import h11

from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.tai.http import HttpStream, NoAnswer
from yaosb_jupyter.tai.proxy import pages
from yaosb_jupyter.tai.proxy.client import Client, ClientGone
from yaosb_jupyter.tai.proxy.headers import Mount, request_headers, response_headers, switching_headers
from yaosb_jupyter.tai.proxy.tickets import Target

ANSWER_PATIENCE = 300.0
"""Seconds from a request's end to its response's head. What follows is not bounded: an event stream may be silent."""
SILENCE = 30.0
"""Seconds that a response may stand still once the browser has ended what it asks: one that has left looks the same."""
_LINGER = 10.0
"""Seconds that one way of a switched connection goes on after the other's end."""


async def forward(client: Client, request: h11.Request, path: bytes, target: Target, mount: Mount) -> None:
    """Answers ``request`` with what ``target`` says to it at ``path``, or with a page that says why it does not."""
    try:
        stream = await target.dial()
    except SandboxError as error:
        await client.respond(pages.for_error(error, target.port))
        return
    async with stream:
        upstream = HttpStream(stream)
        headers = request_headers(request.headers, mount)
        try:
            await upstream.send(h11.Request(method=request.method, target=path, headers=headers))
            switched = await _Exchange(client, upstream, target, mount, path).run()
        except h11.ProtocolError:  # what cannot be said in HTTP/1.1, or a body that is none
            if client.may_respond:
                await client.refuse(pages.BAD_REQUEST)
            return
        if switched:
            await _tunnel(client, upstream)


class _Exchange:
    def __init__(self, client: Client, upstream: HttpStream, target: Target, mount: Mount, path: bytes) -> None:
        self._client = client
        self._upstream = upstream
        self._target = target
        self._mount = mount
        self._path = path.decode("latin-1")
        self._patience = asyncio.timeout(None)
        self._allowed: float | None = None
        self._asked_all = False

    async def run(self) -> bool:
        """Whether the protocol was switched. Raises `ClientGone`, `h11.ProtocolError` for what cannot be passed in."""
        try:
            async with asyncio.TaskGroup() as tasks:
                up = tasks.create_task(self._up())
                switched = await self._down()
                up.cancel()
        except ExceptionGroup as errors:  # what `except*` raises, Python 3.11.2 puts in a group
            raise errors.exceptions[0] from errors
        return switched

    def _allow(self, seconds: float | None) -> None:
        """From now on, until more comes from inside."""
        self._allowed = seconds
        if not self._patience.expired():
            self._patience.reschedule(None if seconds is None else asyncio.get_running_loop().time() + seconds)

    async def _up(self) -> None:
        """Passes the body on, then watches the browser: when it leaves, so do we."""
        try:
            while isinstance(event := await self._client.receive(), h11.Data):
                await self._upstream.send(event)
            await self._upstream.send(h11.EndOfMessage())
        except SandboxError:
            pass  # of which the response tells
        if self._client.may_respond:
            self._allow(ANSWER_PATIENCE)
        self._asked_all = await self._client.ends()
        if self._asked_all:
            self._allow(SILENCE)

    async def _down(self) -> bool:
        try:
            async with self._patience:
                return await self._answer()
        except TimeoutError:
            if not self._client.may_respond:
                raise ClientGone from None
            assert self._allowed is not None
            await self._client.respond(pages.late(self._target.port, self._target.name, self._allowed))
            return False

    async def _answer(self) -> bool:
        port, name = self._target.port, self._target.name
        try:
            head = await self._head()
        except SandboxError as error:
            await self._client.respond(pages.for_error(error, port))
        except NoAnswer:
            await self._client.respond(pages.unanswered(port, name))
        except h11.RemoteProtocolError as error:
            await self._client.respond(pages.broken(port, name, str(error)))
        else:
            if isinstance(head, h11.InformationalResponse):
                return True
            await self._pass_on(head)
        return False

    async def _head(self) -> h11.Response | h11.InformationalResponse:
        """Of the response, passed on where it switches protocols or says only that one follows."""
        while True:
            event = await self._upstream.receive()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise h11.RemoteProtocolError("it sent no response")
            switches = event.status_code == 101
            headers = switching_headers(event.headers) if switches else []
            await self._client.send(h11.InformationalResponse(status_code=event.status_code, headers=headers))
            if switches:
                return event

    async def _pass_on(self, head: h11.Response) -> None:
        headers = response_headers(head.headers, self._mount, self._path)
        response = h11.Response(status_code=head.status_code, headers=headers, reason=head.reason)
        await self._client.send(response)
        try:
            self._allow(SILENCE if self._asked_all else None)
            while isinstance(event := await self._upstream.receive(), h11.Data):
                await self._client.send(event)
                self._allow(SILENCE if self._asked_all else None)
        except (SandboxError, h11.RemoteProtocolError) as error:
            raise ClientGone from error  # it sees an end that came too early
        await self._client.send(h11.EndOfMessage())


async def _tunnel(client: Client, upstream: HttpStream) -> None:
    """Carries both ways until both have ended."""
    stream = upstream.stream

    async def up() -> None:
        data = client.trailing or await client.read_raw()
        while data:
            await stream.send(data)
            data = await client.read_raw()
        await stream.send_eof()

    async def down() -> None:
        data = upstream.trailing or await stream.receive()
        while data:
            await client.write(data)
            data = await stream.receive()
        client.write_eof()

    ways = [asyncio.create_task(up()), asyncio.create_task(down())]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait(ways, timeout=_LINGER)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)  # a way that broke ends the other
    raise ClientGone
