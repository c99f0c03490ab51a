"""How far something long is: what the work tells, and the bar that shows it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from IPython.display import display

from yaosb_jupyter.core.files.copies import Step
from yaosb_jupyter.jupyter.events import Progress
from yaosb_jupyter.jupyter.markup import element, page, printable
from yaosb_jupyter.types import PullProgress
from yaosb_jupyter.units import format_duration, format_size

_PATIENCE = 0.3
_INTERVAL = 0.2
_LAYERS = 6


class ProgressDisplay:
    """Shows progress in the cell once it has taken a moment, a few times a second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._task = ""
        self._next = 0.0
        self._handle: Any = None

    def show(self, progress: Progress) -> None:
        now = self._clock()
        if progress.task != self._task:
            self._task = progress.task
            self._next = now + _PATIENCE
        if now < self._next:
            return
        self._next = now + _INTERVAL
        bundle = {"text/plain": progress_text(progress), "text/html": progress_html(progress)}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(bundle, raw=True)

    def close(self, summary: str) -> None:
        """The last word, a line or several, in place of the bar; nothing where there is none to say or to replace."""
        bundle = {"text/plain": "\n".join(map(printable, summary.split("\n")))}
        if self._handle is not None:
            self._handle.update(bundle, raw=True)
        elif summary:
            display(bundle, raw=True)  # type: ignore[no-untyped-call]


def progress_text(progress: Progress) -> str:
    """In one line."""
    share = "" if progress.share is None else f"{progress.share:.0%}"
    return printable("  ".join(part for part in (progress.task, share, progress.words) if part))


def progress_html(progress: Progress) -> str:
    """With a bar."""
    share = 0.0 if progress.share is None else progress.share
    bar = element("div", element("div", class_="y-bar", style=f"width:{share:.1%}"), class_="y-track")
    lines = [element("div", line, class_="y-sub") for line in progress.lines]
    return page(element("div", element("strong", progress.task), "  ", progress.words), bar, *lines)


class CopyMeter:
    """How far a copy is, and how fast, by its steps."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._number = 0
        self._began = 0.0

    def add(self, step: Step) -> Progress:
        """Takes a step; what there is to show since."""
        now, done, total = self._clock(), step.progress.done, step.progress.total
        if step.number != self._number:
            self._number, self._began = step.number, now
        parts = [f"{format_size(done)} of {format_size(total)}"]
        if step.progress.files:
            parts.append(f"{step.progress.files} file{'' if step.progress.files == 1 else 's'}")
        elapsed = now - self._began
        if elapsed >= 1 and done:
            rate = done / elapsed
            parts += [f"{format_size(round(rate))}/s", f"{format_duration(max(0.0, total - done) / rate)} left"]
        which = f" ({step.number} of {step.count})" if step.count > 1 else ""
        return Progress(
            task=f"copying {step.source}{which}",
            share=min(1.0, done / total) if total else None,
            words=", ".join(parts),
            lines=[step.progress.path] if step.progress.path else [],
        )


class PullLayers:
    """The layers of an image being pulled, as the engine tells them."""

    def __init__(self, image: str) -> None:
        self._image = image
        self._layers: dict[str, PullProgress] = {}
        self._status = ""

    def add(self, step: PullProgress) -> Progress:
        """Takes a step; what there is to show since."""
        if step.layer:
            self._layers[step.layer] = step
        else:
            self._status = step.status
        layers = self._layers.values()
        total = sum(layer.total for layer in layers)
        done = sum(min(layer.current, layer.total) for layer in layers)
        words = f"{format_size(done)} of {format_size(total)} in {len(layers)} layers" if total else self._status
        active = [layer for layer in layers if layer.current < layer.total]
        return Progress(
            task=f"pulling {self._image}".rstrip(),
            share=done / total if total else None,
            words=words,
            lines=[_layer(layer) for layer in active[:_LAYERS]],
        )


def _layer(layer: PullProgress) -> str:
    return f"{layer.layer}  {layer.status}  {format_size(layer.current)} of {format_size(layer.total)}"
