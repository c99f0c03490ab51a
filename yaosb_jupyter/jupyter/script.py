"""A cell's body as a file, and the command that runs it."""

from __future__ import annotations

from dataclasses import dataclass

_SHELL = 'if command -v bash >/dev/null 2>&1; then exec bash -eo pipefail "$0"; else exec sh -e "$0"; fi'
_PYTHON = 'if command -v python3 >/dev/null 2>&1; then exec python3 "$0"; else exec python "$0"; fi'


@dataclass(frozen=True)
class Language:
    """How a script is run: ``argv`` before its path; ``suffix`` of its file."""

    argv: tuple[str, ...]
    suffix: str


_LANGUAGES = {
    "": Language(("sh", "-c", _SHELL), ".sh"),
    "bash": Language(("bash", "-eo", "pipefail"), ".sh"),
    "sh": Language(("sh", "-e"), ".sh"),
    "python": Language(("sh", "-c", _PYTHON), ".py"),
    "node": Language(("node",), ".js"),
    "ruby": Language(("ruby",), ".rb"),
    "perl": Language(("perl",), ".pl"),
    "r": Language(("Rscript",), ".R"),
}
_ALIASES = {"shell": "sh", "python3": "python", "py": "python", "javascript": "node", "js": "node", "rscript": "r"}
LANGUAGES = sorted(name for name in _LANGUAGES if name)


def language(name: str) -> Language:
    """The language of that name; a name that is not known is the command that runs the file."""
    key = name.lower()
    return _LANGUAGES.get(_ALIASES.get(key, key)) or Language((name,), "")
