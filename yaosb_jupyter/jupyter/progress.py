"""How far something long is: one line that is rewritten, with a bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from IPython.display import display

from yaosb_jupyter.jupyter.markup import element, page, printable
from yaosb_jupyter.jupyter.transfer import CopyProgress
from yaosb_jupyter.types import PullProgress
from yaosb_jupyter.units import format_size

_PATIENCE = 0.3
_LAYERS = 6


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A task, how much of it is done (0 to 1, None unknown), and words about it."""

    task: str
    share: float | None = None
    words: str = ""
    lines: Sequence[str] = ()

    def text(self) -> str:
        share = "" if self.share is None else f" {self.share:4.0%} "
        return printable(f"{self.task}{share}{' ' if self.words else ''}{self.words}")

    def html(self) -> str:
        bar = element("div", class_="y-bar", style=f"width:{(self.share or 0) * 100:.1f}%")
        rows = [element("div", line, class_="y-sub") for line in self.lines]
        return page(
            element("div", element("strong", self.task), f" {self.words}"),
            element("div", bar, class_="y-track"),
            *rows,
        )


class ProgressDisplay:
    """Shows progress in the cell once it has taken a moment, a few times a second, and takes it away at the end."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = clock() + _PATIENCE
        self._handle: Any = None

    def show(self, progress: Progress) -> None:
        if self._clock() < self._next:
            return
        self._next = self._clock() + 0.2
        bundle = {"text/plain": progress.text(), "text/html": progress.html()}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(bundle, raw=True)

    def close(self, summary: str = "") -> None:
        """The last word, in place of the bar."""
        if self._handle is not None:
            self._handle.update({"text/plain": summary}, raw=True)
        elif summary:
            display({"text/plain": summary}, raw=True)  # type: ignore[no-untyped-call]


def copy_progress(source: str, step: CopyProgress) -> Progress:
    """A copy's step in words."""
    words = f"{format_size(step.done)} of {format_size(step.total)}"
    return Progress(
        task=f"copying {source}", share=min(1.0, step.done / step.total) if step.total else None, words=words
    )


class PullLayers:
    """The layers of an image being pulled, as the engine tells them."""

    def __init__(self, image: str) -> None:
        self._image = image
        self._layers: dict[str, PullProgress] = {}
        self._status = ""

    def add(self, step: PullProgress) -> None:
        if step.layer:
            self._layers[step.layer] = step
        else:
            self._status = step.status

    def progress(self) -> Progress:
        layers = self._layers.values()
        total = sum(layer.total for layer in layers)
        done = sum(min(layer.current, layer.total) for layer in layers)
        words = f"{format_size(done)} of {format_size(total)}, {len(layers)} layers" if total else self._status
        active = [layer for layer in layers if layer.total and layer.current < layer.total]
        lines = [
            f"{layer.layer}  {layer.status}  {format_size(layer.current)} of {format_size(layer.total)}"
            for layer in active[:_LAYERS]
        ]
        return Progress(task=f"pulling {self._image}", share=done / total if total else None, words=words, lines=lines)
