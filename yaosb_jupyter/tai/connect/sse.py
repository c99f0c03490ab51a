"""Event streams, as the HTML standard has them ("Server-sent events", interpreting an event stream). Pure."""

from __future__ import annotations

import codecs
from typing import Final

from yaosb_jupyter.types import ServerEvent

_BOM: Final = "\ufeff"


class EventTooLarge(ValueError):  # noqa: N818
    """An event, or a line of one, is larger than was allowed."""


class EventParser:
    """Bytes in, whole events out, wherever the bytes were cut.

    ``last_event_id`` is what a client that connects again tells; ``retry`` the seconds that the server wants it to
    wait, where it has said so. An event that is not finished when the stream ends is none.
    """

    def __init__(self, *, last_event_id: str = "", max_size: int = 2**62) -> None:
        self.last_event_id = last_event_id
        self.retry: float | None = None
        self._max_size = max_size
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = False
        self._line: list[str] = []  # pieces of the line that is not finished
        self._line_size = 0
        self._after_cr = False
        self._data: list[str] = []
        self._size = 0
        self._event = ""
        self._id = last_event_id

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The events that ``data`` finishes. Raises `EventTooLarge`."""
        text = self._decoder.decode(data)
        if not self._begun and text:
            self._begun = True
            text = text.removeprefix(_BOM)
        if self._after_cr and text:
            self._after_cr = False
            text = text.removeprefix("\n")
        self._after_cr = self._after_cr or text.endswith("\r")
        *ended, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        events = []
        for piece in ended:
            self._keep(piece)
            line = "".join(self._line)
            self._line.clear()
            self._line_size = 0
            if (event := self._take(line)) is not None:
                events.append(event)
        self._keep(rest)
        return events

    def _keep(self, piece: str) -> None:
        if piece:
            self._line.append(piece)
            self._line_size += len(piece)
            if self._line_size + self._size > self._max_size:
                raise EventTooLarge(f"an event of more than {self._max_size} characters")

    def _take(self, line: str) -> ServerEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:  # a comment has no name
            case "data":
                self._data.append(value)
                self._size += len(value) + 1
            case "event":
                self._event = value
            case "id" if "\0" not in value:
                self._id = value
            case "retry" if value.isascii() and value.isdigit():
                self.retry = float(value) / 1000
        return None

    def _dispatch(self) -> ServerEvent | None:
        self.last_event_id = self._id
        data, event = self._data, self._event
        self._data, self._event, self._size = [], "", 0
        if not data:
            return None
        return ServerEvent(event=event or "message", data="\n".join(data), id=self.last_event_id)
