"""A cell's body as a file, and the command that runs it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from yaosb_jupyter.types import WORKDIR


@dataclass(frozen=True)
class Language:
    """How a script is run: the first of ``interpreters`` that is there; ``suffix`` of its file."""

    interpreters: tuple[tuple[str, ...], ...]
    suffix: str = ""

    def argv(self, name: str) -> tuple[str, ...]:
        """Runs the file ``name`` of the working directory, else of the workspace."""
        *preferred, last = (shlex.join(words) for words in self.interpreters)
        lines = [f'f=$0; [ -e "$f" ] || f={WORKDIR}/$0']
        lines += [f'command -v {words.split()[0]} >/dev/null 2>&1 && exec {words} "$f"' for words in preferred]
        return ("sh", "-c", "\n".join([*lines, f'exec {last} "$f"']), name)


_LANGUAGES = {
    "": Language((("bash", "-eo", "pipefail"), ("sh", "-e")), ".sh"),
    "bash": Language((("bash", "-eo", "pipefail"),), ".sh"),
    "sh": Language((("sh", "-e"),), ".sh"),
    "python": Language((("python3",), ("python",)), ".py"),
    "node": Language((("node",), ("nodejs",)), ".js"),
    "ruby": Language((("ruby",),), ".rb"),
    "perl": Language((("perl",),), ".pl"),
    "r": Language((("Rscript",),), ".R"),
}
_ALIASES = {"shell": "sh", "python3": "python", "py": "python", "javascript": "node", "js": "node", "rscript": "r"}
LANGUAGES = sorted(name for name in _LANGUAGES if name)


def language(name: str) -> Language:
    """The language of that name; any other name is the command that runs the file."""
    key = name.lower()
    return _LANGUAGES.get(_ALIASES.get(key, key)) or Language((tuple(shlex.split(name)),))
