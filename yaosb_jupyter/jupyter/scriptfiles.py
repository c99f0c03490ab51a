"""The files in a workspace that a notebook's cells run from."""

from __future__ import annotations

import hashlib
import posixpath
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio

from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import NotFoundError, PathError, SandboxError

_NAME = re.compile(r"\.cell-[0-9a-f]{8}-[0-9a-f]{8}(\.\w+)?")
_CLEANUP = 2.0


def is_script(name: str) -> bool:
    """Whether a file is the script of some cell, and not for people to see."""
    return _NAME.fullmatch(name) is not None


class ScriptFiles:
    """Places and removes scripts, named so that the next kernel of the same notebook knows them for its own.

    What a killed kernel or daemon left is removed by the notebook's next cell in that directory.
    """

    def __init__(self, notebook: str) -> None:
        self._prefix = f".cell-{hashlib.sha256(notebook.encode()).hexdigest()[:8]}-"
        self._swept: set[tuple[str, str]] = set()

    @asynccontextmanager
    async def place(self, sandbox: AsyncSandbox, body: str, *, cwd: str, suffix: str) -> AsyncIterator[str]:
        """The name of a file that holds ``body``, in ``cwd`` where that is in the workspace, else at its top."""
        directory = await _directory(sandbox, cwd)
        await self._sweep(sandbox, directory)
        name = f"{self._prefix}{secrets.token_hex(4)}{suffix}"
        path = posixpath.join(directory, name)
        try:
            await sandbox.files.write(path, body, mode=0o644)
            yield name
        finally:
            with anyio.move_on_after(_CLEANUP, shield=True) as cleanup:
                try:
                    await sandbox.files.remove(path)
                except NotFoundError:
                    pass  # not written, or gone with a one-shot sandbox
                except SandboxError:
                    cleanup.cancel()
            if cleanup.cancel_called:
                self._swept.discard((sandbox.uid, directory))

    async def _sweep(self, sandbox: AsyncSandbox, directory: str) -> None:
        if (sandbox.uid, directory) in self._swept:
            return
        for file in await sandbox.files.list(directory):
            if file.name.startswith(self._prefix) and is_script(file.name):
                with suppress(NotFoundError):
                    await sandbox.files.remove(posixpath.join(directory, file.name))
        self._swept.add((sandbox.uid, directory))


async def _directory(sandbox: AsyncSandbox, cwd: str) -> str:
    """Where in the workspace the script lies: beside what it imports, where that is there."""
    if cwd:
        with suppress(NotFoundError, PathError):  # a working directory outside of the workspace
            if (await sandbox.files.stat(cwd)).is_dir:
                return cwd
    return ""
