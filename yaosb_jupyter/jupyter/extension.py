"""What ``%load_ext yaosb_jupyter`` does."""

from __future__ import annotations

import asyncio
import os

from IPython.core.interactiveshell import InteractiveShell

from yaosb_jupyter.blocking.entry import manager
from yaosb_jupyter.blocking.loop import background
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.jupyter.completion import COMMANDS, MATCHER, Completer
from yaosb_jupyter.jupyter.foreground import Start
from yaosb_jupyter.jupyter.known import SessionKnown
from yaosb_jupyter.jupyter.magics import SandboxMagics
from yaosb_jupyter.jupyter.session import Session, notebook_name


def load_ipython_extension(shell: InteractiveShell) -> None:
    """The magics, over this process's manager, which connects when it is first needed."""
    register(shell, Session(_connect, notebook_name(os.environ, shell.user_ns)), background().start)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Takes magics and completion away; sandboxes go on."""
    for command in COMMANDS:
        kind = "cell" if command.startswith("%%") else "line"
        shell.magics_manager.magics[kind].pop(command.lstrip("%"), None)
    _forget_completion(shell)


def register(shell: InteractiveShell, session: Session, start: Start) -> None:
    """Gives a shell the magics and their completion; their work is done on the loop that ``start`` leads to."""
    shell.register_magics(SandboxMagics(shell, session, start))
    _forget_completion(shell)
    shell.Completer.custom_matchers.append(Completer(SessionKnown(session, start)).match)


def _forget_completion(shell: InteractiveShell) -> None:
    matchers = shell.Completer.custom_matchers
    matchers[:] = [each for each in matchers if getattr(each, "matcher_identifier", "") != MATCHER]


async def _connect() -> AsyncManager:
    # The blocking way in, for the one manager that a notebook's own code gets too.
    return (await asyncio.to_thread(manager)).inner
