"""The cell, as the work sees it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from IPython.display import display

from yaosb_jupyter.jupyter.events import Event, Notice, Progress
from yaosb_jupyter.jupyter.markup import element, page, printable
from yaosb_jupyter.jupyter.output import OutputWriter
from yaosb_jupyter.jupyter.progress import ProgressDisplay
from yaosb_jupyter.types import Output


class Screen:
    """Shows events in the cell that made it."""

    def __init__(self) -> None:
        self._output = OutputWriter(sys.stdout, sys.stderr)
        self._progress = ProgressDisplay()

    def show(self, events: Sequence[Event]) -> None:
        """Shows a batch; of several steps of progress the last."""
        pieces: list[Output[str]] = []
        step: Progress | None = None
        for event in events:
            match event:
                case Output():
                    pieces.append(event)
                case Progress():
                    step = event
                case Notice(text):
                    self._output.write(pieces)
                    pieces = []
                    _notice(text)
        self._output.write(pieces)
        if step is not None:
            self._progress.show(step)

    def close(self, summary: str = "") -> None:
        """Shows what was held back, and the last word."""
        self._output.close()
        self._progress.close(summary)


def _notice(text: str) -> None:
    bundle = {"text/plain": printable(text), "text/html": page(element("div", text, class_="y-sub"))}
    display(bundle, raw=True)  # type: ignore[no-untyped-call]
