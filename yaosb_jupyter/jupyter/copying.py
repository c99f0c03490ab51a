"""Copies between here and sandboxes, told to the cell."""

from __future__ import annotations

from collections.abc import Sequence

from yaosb_jupyter.core.files.copies import Copies, CopyOptions, Done, Find, Step
from yaosb_jupyter.core.files.places import Place
from yaosb_jupyter.jupyter.events import Event
from yaosb_jupyter.jupyter.mailbox import Mailbox
from yaosb_jupyter.jupyter.markup import printable
from yaosb_jupyter.jupyter.progress import CopyMeter
from yaosb_jupyter.units import format_size

_MOST_LINES = 20


async def copy(
    find: Find,
    sources: Sequence[Place],
    target: Place,
    mailbox: Mailbox[Event],
    options: CopyOptions = CopyOptions(),  # noqa: B008 - frozen
) -> str:
    """Copies, telling how far it is; what to say about it."""
    meter = CopyMeter()

    def report(step: Step) -> None:
        mailbox.post(meter.add(step))

    return summary(await Copies(find, report, options).run(sources, target))


def summary(done: Sequence[Done]) -> str:
    """A line for each source, and one for all where they are many."""
    lines = [_line(each) for each in done[:_MOST_LINES]]
    if len(done) > _MOST_LINES:
        lines.append(f"and {len(done) - _MOST_LINES} more")
    if len(done) > 1:
        lines.append(
            _counts(sum(each.copied.files for each in done), sum(each.copied.size for each in done)) + " in all"
        )
    return "\n".join(lines)


def _line(done: Done) -> str:
    copied = done.copied
    unchanged = f", {copied.unchanged} unchanged" if copied.unchanged else ""
    skipped = f"; left out, as links or special files: {', '.join(copied.skipped)}" if copied.skipped else ""
    return printable(f"{done.source} -> {done.target} ({_counts(copied.files, copied.size)}{unchanged}){skipped}")


def _counts(files: int, size: int) -> str:
    return format_size(size) if files == 1 else f"{files} files, {format_size(size)}"
