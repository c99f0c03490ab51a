"""Copies between here and a sandbox, told to the cell."""

from __future__ import annotations

from pathlib import Path

from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.jupyter.events import Event
from yaosb_jupyter.jupyter.mailbox import Mailbox
from yaosb_jupyter.jupyter.progress import copy_progress
from yaosb_jupyter.jupyter.transfer import Report, download, upload
from yaosb_jupyter.types import Copied, CopyProgress
from yaosb_jupyter.units import format_size


async def copy_in(sandbox: AsyncSandbox, source: Path, target: str, mailbox: Mailbox[Event]) -> str:
    """Uploads; what to say about it."""
    copied = await upload(sandbox, source, target, _reporter(str(source), mailbox))
    return _summary(str(source), f"{sandbox.id}:{copied.target}", copied)


async def copy_out(sandbox: AsyncSandbox, source: str, target: Path, mailbox: Mailbox[Event]) -> str:
    """Downloads; what to say about it."""
    copied = await download(sandbox, source, target, _reporter(source, mailbox))
    return _summary(f"{sandbox.id}:{source}", copied.target, copied)


def _reporter(source: str, mailbox: Mailbox[Event]) -> Report:
    def report(step: CopyProgress) -> None:
        mailbox.post(copy_progress(source, step))

    return report


def _summary(source: str, target: str, copied: Copied) -> str:
    files = "" if (copied.files, copied.unchanged) == (1, 0) else f"{copied.files} files, "
    same = f", {copied.unchanged} unchanged" if copied.unchanged else ""
    skipped = f"; left out, as links or special files: {', '.join(copied.skipped)}" if copied.skipped else ""
    return f"{source} -> {target} ({files}{format_size(copied.size)}{same}){skipped}"
