"""Which sandbox a notebook uses."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from pathlib import PurePath

from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import NotFoundError


class Session:
    """A notebook's connection, made when it is first needed, and the sandbox in use. All of it lives on one loop."""

    def __init__(self, connect: Callable[[], Awaitable[AsyncManager]], name: str) -> None:
        self._connect = connect
        self._name = name
        self._manager: AsyncManager | None = None
        self.current = ""
        """The uid of the sandbox in use, or ``""``."""

    async def manager(self) -> AsyncManager:
        if self._manager is None:
            self._manager = await self._connect()
        return self._manager

    @property
    def connected(self) -> AsyncManager | None:
        """The manager, where there is a connection already."""
        return self._manager

    async def sandbox(self, ref: str = "") -> AsyncSandbox:
        """The one named, else the one in use. Raises `NotFoundError`."""
        if not (ref or self.current):
            raise NotFoundError(
                "no sandbox is in use here", hint="name one, or make one: %sandbox create NAME, %sandbox use NAME"
            )
        return await (await self.manager()).get(ref or self.current)

    async def sandbox_or_new(self, ref: str = "") -> tuple[AsyncSandbox, bool]:
        """As `sandbox`; where none is in use, this notebook's session sandbox. Tells whether that was taken."""
        try:
            return await self.sandbox(ref), False
        except NotFoundError:
            if ref:
                raise
        sandbox = await (await self.manager()).get_or_create(self._name)
        self.current = sandbox.uid
        return sandbox, True

    def forget(self, uid: str) -> None:
        """A sandbox is gone."""
        if self.current == uid:
            self.current = ""


def notebook_name(environ: Mapping[str, str], namespace: Mapping[str, object]) -> str:
    """The id of a notebook's own sandbox: the same for each kernel of one notebook, where the front end tells its path.

    Jupyter's server tells it in the environment, VS Code in the kernel's namespace.
    """
    path = environ.get("JPY_SESSION_NAME") or str(namespace.get("__vsc_ipynb_file__") or "")
    if not path:
        return f"notebook-{secrets.token_hex(3)}"
    stem = re.sub(r"[^A-Za-z0-9]+", "-", PurePath(path).stem).strip("-")[:40] or "notebook"
    return f"{stem}-{hashlib.sha256(path.encode()).hexdigest()[:6]}"
