"""The guest as one file that any Python from 3.8 on can run."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import re
import tempfile
import tokenize
import zipfile
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path

PACKAGE = "yaosb_guest"
"""What the guest's package is called inside the blob."""

_START = f"""
import sys
if sys.argv[1:2] == ["relay"]:
    from {PACKAGE}.relay import relay
    raise SystemExit(relay(sys.argv[2]))
from {PACKAGE}.main import main
raise SystemExit(main())
"""
_IMPORT = re.compile(r"^ *from \.(\w*) import (\w+(?:, \w+)*)", re.MULTILINE)
_STATEMENT_BEGINS = frozenset({tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT})
_EPOCH = (1980, 1, 1, 0, 0, 0)


@functools.cache
def guest_blob() -> bytes:
    """A zip of the guest: its sources, without their documentation."""
    files = {"__main__.py": _START, **guest_sources("__init__", "main", "relay")}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zip_file:
        for name, source in sorted(files.items()):
            zip_file.writestr(zipfile.ZipInfo(name, _EPOCH), source, zipfile.ZIP_DEFLATED, 9)
    return archive.getvalue()


def install_blob(directory: Path) -> Path:
    """Puts the guest into ``directory``, readable for all, once per content."""
    return installed(directory, guest_blob(), ".pyz")


def installed(directory: Path, content: bytes, suffix: str) -> Path:
    path = directory / f"guest-{hashlib.sha256(content).hexdigest()[:16]}{suffix}"
    if not path.exists():
        # A name of its own: several pools of one process install it at the same moment.
        descriptor, name = tempfile.mkstemp(prefix="new-", dir=directory)
        fresh = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        fresh.chmod(0o644)
        fresh.replace(path)
    return path


def guest_sources(*modules: str) -> Mapping[str, str]:
    """These modules and all that they import of the guest, by their places below the blob."""
    return {f"{PACKAGE}/{module}.py": _without_documentation(_source(module)) for module in _needed(*modules)}


def _needed(*modules: str) -> list[str]:
    """These modules of the guest and all that they import of it: others of the package serve other programs."""
    found: list[str] = []
    todo = list(modules)
    while todo:
        module = todo.pop()
        if module not in found:
            found.append(module)
            todo += _imported(module)
    return sorted(found)


def _imported(module: str) -> Iterator[str]:
    """``from . import a`` and ``from .a import b``: the only two ways that modules of the guest name each other.

    Not by `ast`: where two threads use that at once, as a kernel that compiles its next cell does, either may fail.
    """
    for named, imported in _IMPORT.findall(_source(module)):
        yield from [named] if named else imported.split(", ")


def _source(module: str) -> str:
    return resources.files("yaosb_jupyter.guest").joinpath(f"{module}.py").read_text(encoding="utf-8")


def _without_documentation(source: str) -> str:
    """A fifth of it; lines keep their numbers."""
    lines = source.split("\n")
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_statement = before.type in _STATEMENT_BEGINS and after.type == tokenize.NEWLINE
        if token.type == tokenize.STRING and is_statement:
            (first, column), (last, _) = token.start, token.end
            lines[first - 1 : last] = [lines[first - 1][:column] + '""'] + [""] * (last - first)
    return "\n".join(lines)
