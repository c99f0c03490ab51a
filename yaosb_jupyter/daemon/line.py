"""A client's connection to the daemon, which renews itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from yaosb_jupyter.daemon.requests import Request
from yaosb_jupyter.errors import InvalidOptionError, NotAvailableError, SandboxError, UnavailableError
from yaosb_jupyter.guest.frames import FrameError
from yaosb_jupyter.link.connection import Connection, RemoteError
from yaosb_jupyter.link.passing import claim, passes_descriptors
from yaosb_jupyter.link.stream import Stream
from yaosb_jupyter.wire.codec import from_json
from yaosb_jupyter.wire.errors import CANCELLED, error_from_json

T = TypeVar("T")

_ATTEMPTS = 3

OnMessage = Callable[[dict[str, Any]], None]


class Line:
    """``dial`` connects, starting the daemon where none runs; it raises errors of ours only."""

    def __init__(self, dial: Callable[[], Awaitable[Connection]]) -> None:
        self._dial = dial
        self._connection: Connection | None = None
        self._dialling = asyncio.Lock()
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    async def connect(self) -> Connection:
        """The connection, made anew where it was lost."""
        async with self._dialling:
            if self._closed:
                raise NotAvailableError("this manager is closed", hint="connect() gives a new one")
            if self._connection is None or self._connection.closed:
                self._connection = await self._dial()
            return self._connection

    async def open(self, request: Request) -> Stream:
        """Asks; what happens on the stream is to be read under `told`."""
        connection = await self.connect()
        with told(request):
            return connection.open(request.op, request.arguments())

    async def call(self, kind: type[T], request: Request, on_message: OnMessage | None = None) -> T:
        """Asks and waits for the value, a ``kind``."""
        return from_json(kind, await self._repeat(request, lambda stream: read_value(stream, on_message)))

    async def items(self, kind: type[T], request: Request) -> list[T]:
        """Asks and collects the items that come in messages."""

        async def collect(stream: Stream) -> list[Any]:
            found: list[Any] = []
            await read_value(stream, lambda message: found.extend(message.get("items", ())))
            return found

        return [from_json(kind, item) for item in await self._repeat(request, collect)]

    async def passes_descriptors(self) -> bool:
        """Whether the daemon may have descriptors for us, to be claimed."""
        return passes_descriptors(await self.connect())

    async def claim(self, token: str) -> int:
        """The descriptor that the daemon holds ready; the caller's to close. To be read under `told`."""
        return await claim(await self.connect(), token)

    async def close(self) -> None:
        """Ends the connection, and with it the commands that run through it. Idempotent."""
        self._closed = True
        if self._connection is not None:
            await self._connection.close("the client has closed")

    async def _repeat(self, request: Request, read: Callable[[Stream], Awaitable[T]]) -> T:
        """Asks again after a lost connection where that does no harm, and only there."""
        with told(request):
            for _ in range(_ATTEMPTS - 1 if request.repeatable else 0):
                try:
                    return await self._ask(request, read)
                except ConnectionError:
                    pass  # the next attempt connects anew
            return await self._ask(request, read)

    async def _ask(self, request: Request, read: Callable[[Stream], Awaitable[T]]) -> T:
        connection = await self.connect()
        stream = connection.open(request.op, request.arguments())
        try:
            return await read(stream)
        except BaseException:
            stream.cancel()
            raise


async def read_value(stream: Stream, on_message: OnMessage | None = None) -> Any:
    """What the daemon answers; ``on_message`` gets the messages before."""
    while (message := await stream.receive_message()) is not None:
        if on_message is not None:
            on_message(message)
    return (await stream.result()).get("value")


@contextmanager
def told(request: Request) -> Iterator[None]:
    """Makes what a stream raises our errors."""
    try:
        yield
    except RemoteError as error:
        raise _from_remote(request, error) from None
    except ConnectionError as error:
        raise UnavailableError(
            f"the connection to the daemon was lost during {request.op!r} ({error}); whether it was done is not known",
            hint="look, then repeat it: the next call connects anew",
        ) from error
    except FrameError as error:
        raise InvalidOptionError(f"{request.op!r} is too large: {error}", hint="send large things as files") from error


def _from_remote(request: Request, error: RemoteError) -> SandboxError:
    if error.code == CANCELLED:
        return UnavailableError(f"the daemon ended {request.op!r}", hint="try again")
    return error_from_json(error.fields)
