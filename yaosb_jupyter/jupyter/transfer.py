"""Files and directories into and out of a workspace, placed as ``cp -r`` would."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Callable
from pathlib import Path

from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import NotFoundError
from yaosb_jupyter.types import WORKDIR, Copied, CopyProgress

Report = Callable[[CopyProgress], None]


async def upload(sandbox: AsyncSandbox, source: Path, target: str, report: Report) -> Copied:
    """Copies a file or directory of this machine to ``target``, or into it where it is a directory.

    Raises `NotFoundError`, `PathError`.
    """
    if not await asyncio.to_thread(source.exists):
        raise NotFoundError(f"no file {str(source)!r} here", hint="for a path in a sandbox write NAME:path")
    place = await _remote_target(sandbox, source.name or "files", target)
    return await sandbox.copy_to(source, place, progress=report)


async def download(sandbox: AsyncSandbox, source: str, target: Path, report: Report) -> Copied:
    """Copies a file or directory of the workspace to ``target``, or into it where it is a directory.

    Raises `NotFoundError`, `PathError`.
    """
    name = posixpath.basename(WORKDIR if _is_workspace(source) else posixpath.normpath(source))
    place = target / name if await asyncio.to_thread(target.is_dir) else target
    return await sandbox.copy_from(source, place, progress=report)


async def _remote_target(sandbox: AsyncSandbox, name: str, target: str) -> str:
    if _is_workspace(target):
        return name
    if target.endswith("/"):
        return posixpath.join(target, name)
    try:
        info = await sandbox.files.stat(target)
    except NotFoundError:
        return target
    return posixpath.join(target, name) if info.is_dir else target


def _is_workspace(path: str) -> bool:
    return posixpath.normpath(path) in (".", WORKDIR)
