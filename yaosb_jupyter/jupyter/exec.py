"""``%%sbexec`` and ``%sbexec``: a script run in the sandbox that is meant."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import anyio

from yaosb_jupyter.choices import Lifecycle
from yaosb_jupyter.core.files.places import Place
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import InvalidOptionError, NotFoundError, SandboxError
from yaosb_jupyter.jupyter.copying import copy
from yaosb_jupyter.jupyter.events import Event, Notice
from yaosb_jupyter.jupyter.mailbox import Mailbox
from yaosb_jupyter.jupyter.run import Keep, Script, run_script
from yaosb_jupyter.jupyter.session import Session
from yaosb_jupyter.types import ExecResult

_REMOVAL = 15.0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A script's result, and the sandbox it ran in."""

    result: ExecResult[str]
    sandbox: str


async def execute(
    session: Session, ref: str, script: Script, get: list[str], once: bool, mailbox: Mailbox[Event], keep: Keep
) -> Outcome:
    """Runs the script in the sandbox ``ref`` (else the one in use, else this notebook's own), then brings ``get`` here.

    ``once``: in a sandbox made for it, which is gone afterwards. What ``get`` names and a failed command did not make
    is no error.
    """
    if once:
        return await _execute_once(session, ref, script, get, mailbox, keep)
    sandbox, new = await session.sandbox_or_own(ref)
    if new:
        info = sandbox.last_info
        mailbox.post(Notice(f"No sandbox was in use: this notebook's is {info.id!r} (pool {info.pool}, session)."))
    return await _execute_in(session, sandbox, script, get, mailbox, keep)


async def _execute_once(
    session: Session, ref: str, script: Script, get: list[str], mailbox: Mailbox[Event], keep: Keep
) -> Outcome:
    # A one-shot sandbox is gone with its command's end: before its files could be brought.
    lifecycle = Lifecycle.SESSION if get else Lifecycle.ONE_SHOT
    sandbox = await (await session.manager()).create(ref, lifecycle=lifecycle)
    try:
        return await _execute_in(session, sandbox, script, get, mailbox, keep)
    finally:
        with anyio.move_on_after(_REMOVAL, shield=True), suppress(NotFoundError):
            await sandbox.remove()


async def _execute_in(
    session: Session, sandbox: AsyncSandbox, script: Script, get: list[str], mailbox: Mailbox[Event], keep: Keep
) -> Outcome:
    result = await run_script(sandbox, script, session.scripts, mailbox, keep)
    for path in get:
        try:
            copied = await copy(
                session.sandbox, [Place(ref=sandbox.uid, path=path)], Place(ref=None, path="."), mailbox
            )
        except SandboxError:
            if result.exit_code == 0:
                raise
        else:
            mailbox.post(Notice(copied))
    return Outcome(result=result, sandbox=sandbox.id)


def input_bytes(name: str, namespace: Mapping[str, object]) -> bytes | None:
    """The variable ``--stdin`` names, as bytes; None for no name. Raises `InvalidOptionError`."""
    if not name:
        return None
    if name not in namespace:
        raise InvalidOptionError(f"--stdin {name}: there is no such variable", hint="a str or bytes")
    value = namespace[name]
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise InvalidOptionError(f"--stdin {name}: it is of type {type(value).__name__}", hint="a str or bytes")
