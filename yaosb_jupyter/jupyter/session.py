"""Which sandbox a notebook uses."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import NotFoundError
from yaosb_jupyter.jupyter.scriptfiles import ScriptFiles


@dataclass(frozen=True, kw_only=True)
class Used:
    """The sandbox in use. ``own``: it was made for this notebook because there was none."""

    uid: str
    id: str
    own: bool = False


class Session:
    """A notebook's connection, made when it is first needed, and the sandbox in use. All of it lives on one loop."""

    def __init__(self, connect: Callable[[], Awaitable[AsyncManager]], name: str) -> None:
        self._connect = connect
        self._name = name
        self.scripts = ScriptFiles(name)
        self._manager: AsyncManager | None = None
        self._used: Used | None = None

    async def manager(self) -> AsyncManager:
        if self._manager is None:
            self._manager = await self._connect()
        return self._manager

    @property
    def connected(self) -> AsyncManager | None:
        """The manager, where there is a connection already."""
        return self._manager

    @property
    def current(self) -> str:
        """The uid of the sandbox in use, or ``""``."""
        return self._used.uid if self._used else ""

    def use(self, sandbox: AsyncSandbox) -> None:
        """What names no sandbox means this one from now on."""
        self._used = Used(uid=sandbox.uid, id=sandbox.id)

    def forget(self, sandbox: AsyncSandbox) -> None:
        """It was removed."""
        if self.current == sandbox.uid:
            self._used = None

    async def sandbox(self, ref: str = "") -> AsyncSandbox:
        """The one named, else the one in use. Raises `NotFoundError`."""
        manager = await self.manager()
        if ref:
            return await manager.get(ref)
        if self._used is None:
            raise NotFoundError(
                "no sandbox is in use here", hint="name one, or make one: %sandbox create NAME, %sandbox use NAME"
            )
        try:
            return await manager.get(self._used.uid)
        except NotFoundError as error:
            raise NotFoundError(
                "the sandbox in use is gone: it was removed, or its time was over",
                sandbox=self._used.id,
                hint="make one: %sandbox create NAME, or use another: %sandbox use NAME",
            ) from error

    async def sandbox_or_own(self, ref: str = "") -> tuple[AsyncSandbox, bool]:
        """As `sandbox`; where none is in use, this notebook's own, started or made. Tells whether it is new to it."""
        if ref or (self._used is not None and not self._used.own):
            return await self.sandbox(ref), False
        sandbox = await (await self.manager()).get_or_create(self._name)
        new = sandbox.uid != self.current
        self._used = Used(uid=sandbox.uid, id=sandbox.id, own=True)
        return sandbox, new


def notebook_name(environ: Mapping[str, str], namespace: Mapping[str, object]) -> str:
    """The id of a notebook's own sandbox: the same for each kernel of one notebook, where the front end tells its path.

    Jupyter's server tells it in the environment, VS Code in the kernel's namespace.
    """
    path = environ.get("JPY_SESSION_NAME") or str(namespace.get("__vsc_ipynb_file__") or "")
    if not path:
        return f"notebook-{secrets.token_hex(3)}"
    stem = re.sub(r"[^A-Za-z0-9]+", "-", PurePath(path).stem).strip("-")[:40] or "notebook"
    return f"{stem}-{hashlib.sha256(path.encode()).hexdigest()[:6]}"
