"""Cards and tables: one description, an HTML and a text form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar, overload

from yaosb_jupyter.jupyter.markup import Markup, element, page, printable

Tone = Literal["ok", "busy", "idle", "bad"]
Fact = tuple[str, str]
T = TypeVar("T")

_MOST_SHOWN = 500


@dataclass(frozen=True)
class State:
    """A word with the colour of its meaning."""

    text: str
    tone: Tone

    def html(self) -> Markup:
        return element("span", self.text, class_=f"y-state y-{self.tone}")


@dataclass(frozen=True, kw_only=True)
class Section:
    """Facts that are folded away under their title."""

    title: str
    facts: Sequence[Fact]


@dataclass(frozen=True, kw_only=True, repr=False)
class Card:
    """One thing: its name and state, its facts, notes, and folded sections. Facts without a value are left out."""

    title: str
    state: State
    subtitle: str = ""
    facts: Sequence[Fact] = ()
    sections: Sequence[Section] = ()
    notes: Sequence[str] = ()

    def _repr_html_(self) -> Markup:
        head = [element("span", self.title, class_="y-title"), self.state.html()]
        if self.subtitle:
            head.append(element("span", self.subtitle, class_="y-sub"))
        body = [_facts_html(self.facts)]
        body += [
            element("details", element("summary", section.title), _facts_html(section.facts))
            for section in self.sections
        ]
        body += [element("div", note, class_="y-note") for note in self.notes]
        return page(
            element(
                "div", element("div", *head, class_="y-head"), element("div", *body, class_="y-body"), class_="y-card"
            )
        )

    def __repr__(self) -> str:
        first = "  ".join(part for part in (self.title, f"[{self.state.text}]", self.subtitle) if part)
        lines = [printable(first), *_facts_text(self.facts)]
        for section in self.sections:
            lines += [f"  {section.title}", *_facts_text(section.facts, indent=4)]
        return "\n".join([*lines, *(f"  {printable(note)}" for note in self.notes)])


@dataclass(frozen=True, kw_only=True)
class Column(Generic[T]):
    """How one property of a table's items is called and shown."""

    title: str
    cell: Callable[[T], str | State]
    right: bool = False
    strong: bool = False


class Listing(Sequence[T]):
    """A sequence that shows itself as a table; what is empty for all items is left out.

    ``upright``: an item a row; else an item a column, for few items with many properties. Of more than 500 items the
    first are shown, and how many there are.
    """

    def __init__(
        self,
        items: Sequence[T],
        columns: Sequence[Column[T]],
        *,
        empty: str,
        upright: bool = True,
        title: str = "",
        notes: Sequence[str] = (),
    ) -> None:
        self._items = tuple(items)
        self._empty = empty
        self._title = title
        left = len(self._items) - _MOST_SHOWN
        self._notes = [*([f"the first {_MOST_SHOWN} are shown, {left} more are there"] if left > 0 else []), *notes]
        lines = [_line(column, self._items[:_MOST_SHOWN]) for column in columns]
        lines = [line for line in lines if any(cell.text for cell in line[1:])]
        self._rows = [list(row) for row in zip(*lines, strict=True)] if upright else lines

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def _repr_html_(self) -> str:
        title = [element("div", self._title, class_="y-title y-caption")] if self._title else []
        if not self._items:
            return page(*title, element("div", self._empty, class_="y-sub"))
        head = element("tr", *(element("th", cell.text, class_=cell.css) for cell in self._rows[0]))
        rows = (element("tr", *(cell.html() for cell in row)) for row in self._rows[1:])
        table = element("table", element("thead", head), element("tbody", *rows), class_="y-table")
        return page(*title, table, *(element("div", note, class_="y-note") for note in self._notes))

    def __repr__(self) -> str:
        title = [printable(self._title)] if self._title else []
        if not self._items:
            return "\n".join([*title, self._empty])
        widths = [max(len(cell.text) for cell in cells) for cells in zip(*self._rows, strict=True)]
        lines = ("  ".join(cell.aligned(width) for cell, width in zip(row, widths, strict=True)) for row in self._rows)
        return "\n".join([*title, *(line.rstrip() for line in lines), *map(printable, self._notes)])


@dataclass(frozen=True)
class _Cell:
    value: str | State
    css: str = ""

    @property
    def text(self) -> str:
        return printable(self.value.text if isinstance(self.value, State) else self.value)

    def aligned(self, width: int) -> str:
        return self.text.rjust(width) if self.css == "y-right" else self.text.ljust(width)

    def html(self) -> Markup:
        return element("td", self.value.html() if isinstance(self.value, State) else self.value, class_=self.css)


def _line(column: Column[T], items: Sequence[T]) -> list[_Cell]:
    css = "y-right" if column.right else "y-strong" if column.strong else ""
    return [_Cell(column.title, "y-right" if column.right else ""), *(_Cell(column.cell(item), css) for item in items)]


def _facts_html(facts: Sequence[Fact]) -> Markup:
    pairs = [element("dt", name) + element("dd", value) for name, value in facts if value]
    return element("dl", *map(Markup, pairs), class_="y-facts")


def _facts_text(facts: Sequence[Fact], indent: int = 2) -> list[str]:
    shown = [(name, value) for name, value in facts if value]
    width = max((len(name) for name, _ in shown), default=0)
    return [f"{' ' * indent}{name.ljust(width)}  {printable(value)}" for name, value in shown]
