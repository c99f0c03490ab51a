"""HTML in which every text is escaped unless it was made here."""

from __future__ import annotations

import html

from yaosb_jupyter.jupyter.style import CSS


class Markup(str):
    """Text that is HTML already. Everything else is escaped where it is put in."""

    __slots__ = ()


def element(name: str, *children: str, **attributes: str) -> Markup:
    """``<name attributes>children</name>``; a trailing ``_`` of an attribute's name is dropped (``class_``)."""
    given = "".join(f' {key.rstrip("_")}="{html.escape(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{given}>{join(children)}</{name}>")


def join(children: tuple[str, ...]) -> Markup:
    """The children one after the other, escaped where they are not markup."""
    return Markup("".join(child if isinstance(child, Markup) else escape(child) for child in children))


def escape(text: str) -> Markup:
    """``text`` for HTML, its control characters made visible."""
    return Markup(html.escape(printable(text)))


def printable(text: str) -> str:
    """``text`` with what moves the cursor, colours, reorders or hides written as an escape: safe on a terminal."""
    return text if text.isprintable() else "".join(char if char.isprintable() else _escaped(char) for char in text)


def page(*children: str) -> Markup:
    """One output of a cell: the style, and the children in a box of their own."""
    return Markup(f"<style>{CSS}</style>") + element("div", *children, class_="yaosb")  # type: ignore[return-value]


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
