"""What work on the loop has to say to the cell while it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from yaosb_jupyter.types import Output


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A task, how much of it is done (0 to 1, None unknown), words about it, and lines of detail."""

    task: str
    share: float | None = None
    words: str = ""
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class Notice:
    """Something the user should know, in one line."""

    text: str


Event = Output[str] | Progress | Notice
