"""The guest as one file that any Python from 3.8 on can run."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import io
import marshal
import os
import re
import tempfile
import tokenize
import zipfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from types import CodeType

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
_UNCHECKED = (1).to_bytes(4, "little")
_EPOCH = (1980, 1, 1, 0, 0, 0)


@functools.cache
def guest_blob(*, compiled: bool = False) -> bytes:
    """A zip of the guest: its sources, without their documentation, for any Python.

    ``compiled``: its byte code instead, which starts in half the time and on this version of Python only.
    """
    files = {"__main__.py": _START}
    for module in _needed("__init__", "main", "relay"):
        files[f"{PACKAGE}/{module}.py"] = _without_documentation(_source(module))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zip_file:
        for name, source in sorted(files.items()):
            entry = zipfile.ZipInfo(f"{name}c" if compiled else name, _EPOCH)
            zip_file.writestr(entry, _byte_code(name, source) if compiled else source, zipfile.ZIP_DEFLATED, 9)
    return archive.getvalue()


def install_blob(directory: Path, *, compiled: bool = False) -> Path:
    """Puts the guest into ``directory``, readable for all, once per content."""
    blob = guest_blob(compiled=compiled)
    path = directory / f"guest-{hashlib.sha256(blob).hexdigest()[:16]}.pyz"
    if not path.exists():
        # A name of its own: several pools of one process install it at the same moment.
        descriptor, name = tempfile.mkstemp(prefix="new-", dir=directory)
        fresh = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(blob)
        fresh.chmod(0o644)
        fresh.replace(path)
    return path


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


def _without_lines(code: CodeType) -> CodeType:
    """Its table of line numbers is a third of it; a traceback still names the functions."""
    constants = tuple(_without_lines(item) if isinstance(item, CodeType) else item for item in code.co_consts)
    return code.replace(co_consts=constants, co_linetable=b"")


def _byte_code(name: str, source: str) -> bytes:
    code = _without_lines(compile(source, name, "exec", dont_inherit=True, optimize=2))
    source_hash = importlib.util.source_hash(source.encode())
    return importlib.util.MAGIC_NUMBER + _UNCHECKED + source_hash + marshal.dumps(code)
