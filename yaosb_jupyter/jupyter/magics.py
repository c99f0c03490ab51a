"""``%sandbox``, ``%sbexec``, ``%%sbexec`` and ``%%sbwrite``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable
from typing import TypeVar

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_cell_magic, line_magic, magics_class, no_var_expand

from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.jupyter.arguments import cell_parser, line_parser, sandbox_parser, write_parser
from yaosb_jupyter.jupyter.events import Event
from yaosb_jupyter.jupyter.exec import Outcome, execute, input_bytes
from yaosb_jupyter.jupyter.failures import brief
from yaosb_jupyter.jupyter.foreground import Start, follow
from yaosb_jupyter.jupyter.mailbox import Mailbox
from yaosb_jupyter.jupyter.run import Script, raise_for_exit
from yaosb_jupyter.jupyter.screen import Screen
from yaosb_jupyter.jupyter.session import Session
from yaosb_jupyter.jupyter.verbs import Shown, Verbs
from yaosb_jupyter.types import ExecResult

R = TypeVar("R")
RESULT = "_sb"
"""The variable that holds the last result; None where the command did not start."""


@magics_class
class SandboxMagics(Magics):
    """Parses lines in the kernel's thread, works on the loop that ``start`` leads to, shows in the cell."""

    def __init__(self, shell: InteractiveShell, session: Session, start: Start) -> None:
        super().__init__(shell)
        self._shell = shell
        self._session = session
        self._start = start

    @line_magic
    def sandbox(self, line: str) -> Shown | None:
        with brief(self._shell):
            args = sandbox_parser().parse_line(line)
            if args.verb in (None, "help"):
                sandbox_parser().parse_line(f"{vars(args).get('topic') or ''} -h")
            return self._show(lambda mailbox: getattr(Verbs(self._session, mailbox), args.verb)(args))

    @no_var_expand
    @line_cell_magic
    def sbexec(self, line: str, cell: str | None = None) -> None:
        with brief(self._shell):
            if cell is None:
                args, body = line_parser().parse_leading(line)
            else:
                args, body = cell_parser().parse_line(line), cell
            if not body.strip():
                raise InvalidOptionError("there is nothing to run", hint="%sbexec COMMAND, or a cell under %%sbexec")
            self._execute(args, body)

    @no_var_expand
    @cell_magic
    def sbwrite(self, line: str, cell: str) -> None:
        with brief(self._shell):
            path = write_parser().parse_line(line).path
            self._show(lambda mailbox: Verbs(self._session, mailbox).write(path, cell))

    def _execute(self, args: Namespace, body: str) -> None:
        script = Script(
            body=body,
            lang=args.lang,
            cwd=args.cwd,
            env=args.env or {},
            user=args.user,
            timeout=args.timeout,
            stdin=input_bytes(args.stdin, self._shell.user_ns),
        )

        def keep(result: ExecResult[str] | None) -> None:
            self._shell.user_ns[RESULT] = result
            if args.out:
                self._shell.user_ns[args.out] = result

        async def work(mailbox: Mailbox[Event]) -> Outcome:
            return await execute(self._session, args.ref, script, args.get, args.rm, mailbox, keep)

        keep(None)  # what is there of another command is not taken for this one's, should it not start
        outcome = self._follow(work)
        if not args.no_raise:
            raise_for_exit(outcome.result, outcome.sandbox)

    def _show(self, work: Callable[[Mailbox[Event]], Awaitable[Shown]]) -> Shown | None:
        """A line is shown at once, in place of the progress; cards and tables are the cell's value."""
        shown = self._follow(work)
        return None if isinstance(shown, str) else shown

    def _follow(self, work: Callable[[Mailbox[Event]], Awaitable[R]]) -> R:
        screen = Screen()
        last_word = ""
        try:
            value = follow(self._start, work, screen.show)
            last_word = value if isinstance(value, str) else ""
        finally:
            screen.close(last_word)
        return value


# What `%sandbox?` shows.
SandboxMagics.sandbox.__doc__ = sandbox_parser().format_help()
SandboxMagics.sbexec.__doc__ = cell_parser().format_help()
SandboxMagics.sbwrite.__doc__ = write_parser().format_help()
