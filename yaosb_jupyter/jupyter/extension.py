"""What ``%load_ext yaosb_jupyter`` does."""

from __future__ import annotations

from IPython.core.interactiveshell import InteractiveShell

from yaosb_jupyter.jupyter.completion import COMMANDS, Completer
from yaosb_jupyter.jupyter.foreground import Start
from yaosb_jupyter.jupyter.known import SessionKnown
from yaosb_jupyter.jupyter.magics import SandboxMagics
from yaosb_jupyter.jupyter.session import Session


def register(shell: InteractiveShell, session: Session, start: Start) -> None:
    """Gives a shell the magics and their completion; their work is done on the loop that ``start`` leads to."""
    shell.register_magics(SandboxMagics(shell, session, start))
    completer = Completer(SessionKnown(session, start))
    for command in COMMANDS:
        shell.set_hook("complete_command", completer, str_key=command)  # type: ignore[no-untyped-call]


def unregister(shell: InteractiveShell) -> None:
    """Takes magics and completion away."""
    for command in COMMANDS:
        kind = "cell" if command.startswith("%%") else "line"
        shell.magics_manager.magics[kind].pop(command.lstrip("%"), None)
        shell.strdispatchers["complete_command"].strs.pop(command, None)
