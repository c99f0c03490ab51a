"""What can come next on a magic's line."""

from __future__ import annotations

import posixpath
from abc import ABC, abstractmethod
from argparse import Action
from collections.abc import Sequence

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from yaosb_jupyter.choices import Status
from yaosb_jupyter.core.files.places import Place
from yaosb_jupyter.jupyter.arguments import (
    LIFECYCLES,
    NETWORKS,
    cell_parser,
    line_parser,
    sandbox_parser,
    write_parser,
)
from yaosb_jupyter.jupyter.parser import MagicParser
from yaosb_jupyter.jupyter.script import LANGUAGES

MATCHER = "yaosb_jupyter"
"""The name of our matcher in IPython."""
COMMANDS = ("%sandbox", "%sbexec", "%%sbexec", "%%sbwrite")

_FIXED = {
    "lifecycle": LIFECYCLES,
    "network": NETWORKS,
    "lang": LANGUAGES,
    "status": [status.value for status in Status],
}


class Known(ABC):
    """What is known of the sandboxes now; what cannot be told quickly is empty."""

    @abstractmethod
    def ids(self) -> Sequence[str]: ...

    @abstractmethod
    def images(self) -> Sequence[str]: ...

    @abstractmethod
    def pools(self) -> Sequence[str]: ...

    @abstractmethod
    def entries(self, ref: str, directory: str) -> Sequence[str]:
        """Names in a directory of a workspace, directories with a ``/``; ``ref`` empty for the sandbox in use."""


class Completer:
    """Completes lines of our magics: one of IPython's matchers."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._parsers = {
            "%sandbox": sandbox_parser(),
            "%sbexec": line_parser(),
            "%%sbexec": cell_parser(),
            "%%sbwrite": write_parser(),
        }

    @context_matcher(identifier=MATCHER)  # type: ignore[untyped-decorator]
    def match(self, context: CompletionContext) -> SimpleMatcherResult:
        """Where there is something of ours, names of Python are not offered, and files here only where one may stand.

        ``context.token`` is what IPython replaces: the end of the last word, from its last ``:`` or ``=``.
        """
        line = context.full_text.split("\n")[context.cursor_line][: context.cursor_position]
        words = line.split()
        word = "" if not line or line[-1].isspace() else words.pop()
        if not words or words[0] not in self._parsers:
            return {"completions": []}
        prefix = word.removesuffix(context.token)
        found = [each.removeprefix(prefix) for each in self.candidates(words, word) if each.startswith(word)]
        here = words[1:2] == ["cp"] and Place.parse(word).ref is None
        return {
            "completions": [SimpleCompletion(text, type="sandbox") for text in found if text],
            "suppress": True,
            "do_not_suppress": {"IPCompleter.file_matcher"} if here else set(),
        }

    def candidates(self, words: Sequence[str], word: str) -> Sequence[str]:
        """Whole words that may stand in place of ``word`` after ``words``."""
        parser = self._parsers[words[0]]
        given = list(words[1:])
        if parser.verbs:
            if not given:
                return list(parser.verbs)
            if given[0] not in parser.verbs:
                return []
            parser = parser.verbs[given.pop(0)]
        option = parser.options.get(given[-1]) if given else None
        if option is not None and option.nargs != 0:
            return self._values(option, word)
        if word.startswith("-"):
            return list(parser.options)
        positional = _positional(parser, given)
        return [] if positional is None else self._values(positional, word)

    def _values(self, action: Action, word: str) -> Sequence[str]:
        match action.dest:
            case "ref" | "refs":
                return self._known.ids()
            case "image":
                return self._known.images()
            case "pool":
                return self._known.pools()
            case "path" | "get":
                return self._paths(word, bare=True)
            case "sources" | "target":
                return self._paths(word, bare=False)
        return _FIXED.get(action.dest) or list(action.choices or ())

    def _paths(self, word: str, *, bare: bool) -> Sequence[str]:
        """Paths in a workspace; ``bare``: also those without ``NAME:``, which else are paths here."""
        place = Place.inside(word) if bare else Place.parse(word)
        names = [f"{name}:" for name in self._known.ids()]
        if place.ref is None:
            return [":", *names]
        directory = posixpath.dirname(place.path)
        start = word.removesuffix(place.path) + (f"{directory.rstrip('/')}/" if directory else "")
        return [*names, *(start + entry for entry in self._known.entries(place.ref, directory))]


def _positional(parser: MagicParser, given: Sequence[str]) -> Action | None:
    """The positional argument that comes after ``given``; the last one where one may be repeated."""
    count = 0
    value_of_option = False
    for word in given:
        option = parser.options.get(word)
        count += option is None and not value_of_option
        value_of_option = option is not None and option.nargs != 0
    actions = parser.positionals
    if count < len(actions):
        return actions[count]
    return actions[-1] if actions and any(action.nargs in ("*", "+") for action in actions) else None
