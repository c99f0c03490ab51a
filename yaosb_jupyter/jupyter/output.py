"""A command's output in a cell: as it comes, in batches, and not more than a browser can bear."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TextIO

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.types import Output
from yaosb_jupyter.units import format_size

SHOWN = 2**20
"""How much of a command's output a cell shows."""

KEPT = 64 * 2**20
"""How many bytes of each of a command's outputs its result holds, from the end."""

_TAIL = 4096
_FLOOD = 16384
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?!\n)", re.MULTILINE)


class OutputWriter:
    """Writes pieces of output to the cell's two streams, flushed after each batch, in order.

    Beyond ``limit`` characters only the last few are shown, when the command has ended; a note tells so.
    """

    def __init__(self, out: TextIO, err: TextIO, limit: int = SHOWN) -> None:
        self._streams = {ExecChannel.STDOUT: out, ExecChannel.STDERR: err}
        self._limit = limit
        self._shown = VisibleLength()
        self._held = 0
        self._tail = ""

    def write(self, batch: Iterable[Output[str]]) -> None:
        """Shows a batch."""
        for channel, written in _merged(batch):
            room = self._limit - self._shown.total
            if self._held or room <= 0:
                self._hold(written)
                continue
            text = last_writing(written)
            kept = text if "\r" in text else text[:room]
            self._emit(channel, kept)
            self._shown.add(kept)
            if len(kept) < len(text):
                self._hold(text[len(kept) :])

    def close(self) -> None:
        """Shows the end of what was held back."""
        if not self._held:
            return
        left_out = self._held - len(self._tail)
        if left_out:
            kept = f"_sb.stdout and _sb.stderr hold the last {format_size(KEPT)}"
            self._emit(ExecChannel.STDERR, f"\n[{format_size(left_out)} not shown; {kept}]\n")
        self._emit(ExecChannel.STDOUT, self._tail)
        self._held, self._tail = 0, ""

    def _hold(self, text: str) -> None:
        if not self._held:
            note = f"{format_size(self._limit)} shown; the end is shown when the command ends"
            self._emit(ExecChannel.STDERR, f"\n[{note}]\n")
        self._held += len(text)
        self._tail = (self._tail + text[-_TAIL:])[-_TAIL:]

    def _emit(self, channel: ExecChannel, text: str) -> None:
        stream = self._streams[channel]
        stream.write(text)
        stream.flush()


class VisibleLength:
    """How much text stays to be seen: a progress bar that rewrites its line with ``\\r`` counts once."""

    def __init__(self) -> None:
        self._done = 0
        self._line = 0
        self._column = 0

    @property
    def total(self) -> int:
        return self._done + self._line

    def add(self, text: str) -> None:
        last = text.rfind("\n")
        if last >= 0:
            before = text[:last]
            self._done += max(self._line, self._rewritten(before)) + 1
            self._line = self._column = 0
            text = text[last + 1 :]
        for index, part in enumerate(text.split("\r")):
            self._column = len(part) if index else self._column + len(part)
            self._line = max(self._line, self._column)

    def _rewritten(self, text: str) -> int:
        if "\r" not in text:
            return self._line + len(text)
        return self._column + sum(max(map(len, line.split("\r"))) + 1 for line in text.split("\n")) - 1


def last_writing(text: str) -> str:
    """A flood of rewritten lines without what was overwritten at once; other text as it is."""
    return text if len(text) < _FLOOD or "\r" not in text else _OVERWRITTEN.sub("\r", text)


def _merged(batch: Iterable[Output[str]]) -> list[tuple[ExecChannel, str]]:
    """Neighbours of one channel as one piece."""
    merged: list[tuple[ExecChannel, list[str]]] = []
    for piece in batch:
        if merged and merged[-1][0] is piece.channel:
            merged[-1][1].append(piece.data)
        else:
            merged.append((piece.channel, [piece.data]))
    return [(channel, "".join(parts)) for channel, parts in merged]
