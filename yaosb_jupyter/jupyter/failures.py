"""Errors as a cell shows them: what happened and what to do next, without our own stack."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.jupyter.markup import printable
from yaosb_jupyter.jupyter.parser import HelpRequested

_RED, _BOLD, _PLAIN = "\x1b[31m", "\x1b[1m", "\x1b[0m"
_COLOUR = re.compile(r"\x1b\[\d+m")


@contextmanager
def brief(shell: InteractiveShell) -> Iterator[None]:
    """Our errors and interrupts that leave the block are shown in a line or two; help that was asked for is shown."""
    plain = str(shell.colors).lower() == "nocolor"
    try:
        yield
    except HelpRequested as told:
        display({"text/plain": str(told)}, raw=True)  # type: ignore[no-untyped-call]
    except SandboxError as error:
        _render_as(error, _lines(error), plain=plain)
        raise
    except OSError as error:  # of a file here
        _render_as(error, [f"{_RED}{_BOLD}{type(error).__name__}{_PLAIN}: {printable(str(error))}"], plain=plain)
        raise
    except KeyboardInterrupt as error:
        _render_as(error, [f"{_RED}KeyboardInterrupt{_PLAIN}"], plain=plain)
        raise


def _lines(error: SandboxError) -> list[str]:
    where = f" in sandbox {error.sandbox!r}" if error.sandbox else f" in pool {error.pool!r}" if error.pool else ""
    first = f"{_RED}{_BOLD}{type(error).__name__}{_PLAIN}{where}: {printable(error.message)}"
    return [first, printable(error.hint)] if error.hint else [first]


def _render_as(error: BaseException, lines: list[str], *, plain: bool) -> None:
    if plain:
        lines = [_COLOUR.sub("", line) for line in lines]
    vars(error)["_render_traceback_"] = partial(list, lines)  # IPython asks the exception for it
