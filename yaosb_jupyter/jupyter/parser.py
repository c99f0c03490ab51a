"""Command lines of magics: argparse whose errors are IPython's, and which knows its own options."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable
from typing import Any, NoReturn

from IPython.core.error import UsageError

_WORD = re.compile(r"""\s*((?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s"'\\])+)""")


class HelpRequested(Exception):  # noqa: N818 - not an error
    """``-h`` was given: the message is the help."""


class _Help(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        raise HelpRequested(parser.format_help())


class MagicParser(argparse.ArgumentParser):
    """Parses one magic's line. Raises `UsageError`, or `HelpRequested`; never exits, never abbreviates."""

    def __init__(self, prog: str, **kwargs: Any) -> None:
        kwargs |= {"add_help": False, "allow_abbrev": False, "formatter_class": argparse.RawDescriptionHelpFormatter}
        self.options: dict[str, argparse.Action] = {}
        self.positionals: list[argparse.Action] = []
        self.verbs: dict[str, MagicParser] = {}
        super().__init__(prog=prog, **kwargs)
        self.add_argument("-h", "--help", action=_Help, nargs=0, dest=argparse.SUPPRESS, help="show this help")

    def add_argument(self, *args: Any, **kwargs: Any) -> argparse.Action:
        action = super().add_argument(*args, **kwargs)
        self.options.update(dict.fromkeys(action.option_strings, action))
        if not action.option_strings:
            self.positionals.append(action)
        return action

    def add_verbs(self) -> Callable[[str, str], MagicParser]:
        """Makes the parser one of verbs; returns what adds one, by name and description."""
        parsers = self.add_subparsers(dest="verb", metavar="VERB", title="verbs", parser_class=MagicParser)

        def add(name: str, description: str) -> MagicParser:
            self.verbs[name] = parsers.add_parser(name, help=description, description=description)
            return self.verbs[name]

        return add

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n{self.format_usage().strip()}")

    def parse_line(self, line: str) -> argparse.Namespace:
        """The line's arguments, quoted as in a shell."""
        try:
            words = shlex.split(line)
        except ValueError as error:
            self.error(f"{error}: check the quotes")
        return self.parse_args(words)

    def parse_leading(self, line: str) -> tuple[argparse.Namespace, str]:
        """The options a line begins with, and the rest of it as it stands. ``--`` ends the options."""
        position = 0
        while match := _WORD.match(line, position):
            word = match[1]
            if not word.startswith("-") or word == "--":
                break
            position = match.end()
            action = self.options.get(word)
            if action is not None and action.nargs != 0 and (value := _WORD.match(line, position)):
                position = value.end()
        rest = line[position:].strip()
        return self.parse_line(line[:position]), rest.removeprefix("-- ").strip()


def key_value(text: str) -> tuple[str, str]:
    """``KEY=VALUE`` as a pair, for argparse."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value
