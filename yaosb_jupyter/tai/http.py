"""One HTTP/1.1 request over a connection to a port, whoever asks."""

from __future__ import annotations

from collections.abc import Sequence

import h11

from yaosb_jupyter.tai.bytestream import ByteStream

Headers = Sequence[tuple[bytes, bytes]]
"""Names in lower case, as `h11` gives them."""
MAX_HEAD = 2**16
"""Bytes of a request's or a response's head."""


class NoAnswer(h11.RemoteProtocolError):
    """The other side ended the connection before it had said anything of a response."""

    def __init__(self) -> None:
        super().__init__("it ended the connection without an answer")


class HttpStream:
    """The asking side; what `h11` and the connection raise goes to the caller."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)

    async def send(self, event: h11.Event) -> None:
        """Waits while the other side does not read."""
        if data := self._http.send(event):
            await self.stream.send(data)

    async def receive(self) -> h11.Event | type[h11.PAUSED]:
        """The next event: `PAUSED` once the response has ended.

        Raises `h11.RemoteProtocolError`, for a response that ends too early too, and `NoAnswer`.
        """
        while (event := self._http.next_event()) is h11.NEED_DATA:
            data = await self.stream.receive()
            if not data and self._http.their_state is h11.SEND_RESPONSE and not self._http.trailing_data[0]:
                raise NoAnswer
            self._http.receive_data(data)
        return event  # type: ignore[return-value]

    async def response(self) -> h11.Response:
        """The response's head, those before the final one left out."""
        while not isinstance(event := await self.receive(), h11.Response):
            if not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                raise h11.RemoteProtocolError("no response")
        return event

    async def body(self) -> bytes:
        """The next piece of the response's body; ``b""`` at its end."""
        event = await self.receive()
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    @property
    def trailing(self) -> bytes:
        """What came behind a switch of protocols."""
        return self._http.trailing_data[0]


def value_of(headers: Headers, name: bytes) -> str:
    """A header's value, ``""`` where it is missing."""
    return next((value.decode("latin-1") for key, value in headers if key == name), "")
