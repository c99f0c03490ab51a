from __future__ import annotations

import io

import pytest

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.jupyter.output import OutputWriter, VisibleLength, last_writing
from yaosb_jupyter.types import Output

OUT, ERR = ExecChannel.STDOUT, ExecChannel.STDERR


class Recorder(io.StringIO):
    """A cell's stream that notes every write and flush."""

    def __init__(self, name: str, log: list[tuple[str, str]]) -> None:
        super().__init__()
        self.name = name
        self.log = log

    def write(self, text: str) -> int:
        self.log.append((self.name, text))
        return super().write(text)

    def flush(self) -> None:
        self.log.append((self.name, "<flush>"))


class Cell:
    """What a cell saw."""

    def __init__(self, limit: int = 100) -> None:
        self.log: list[tuple[str, str]] = []
        self.out, self.err = Recorder("out", self.log), Recorder("err", self.log)
        self.writer = OutputWriter(self.out, self.err, limit)

    def write(self, *pieces: tuple[ExecChannel, str]) -> None:
        self.writer.write([Output(channel=channel, data=data) for channel, data in pieces])


def test_a_batch_is_one_write_a_channel_in_order_and_flushed() -> None:
    cell = Cell()
    cell.write((OUT, "a"), (OUT, "b"), (ERR, "!"), (OUT, "c"))
    assert cell.log == [
        ("out", "ab"),
        ("out", "<flush>"),
        ("err", "!"),
        ("err", "<flush>"),
        ("out", "c"),
        ("out", "<flush>"),
    ]


def test_j11_output_is_capped_with_a_note_and_its_end_is_shown() -> None:
    cell = Cell(limit=100)
    for _ in range(100):
        cell.write((OUT, "x" * 999 + "\n"))
    cell.write((OUT, "the last line\n"))
    during = cell.out.getvalue()
    assert during == "x" * 100
    assert "shown" in cell.err.getvalue()
    cell.writer.close()
    assert cell.out.getvalue().endswith("the last line\n")
    assert len(cell.out.getvalue()) < 5000
    assert "_sb" in cell.err.getvalue()
    assert len([text for name, text in cell.log if name == "err" and "shown" in text]) == 2


def test_output_below_the_cap_has_no_note() -> None:
    cell = Cell(limit=100)
    cell.write((OUT, "x" * 100))
    cell.writer.close()
    assert cell.out.getvalue() == "x" * 100
    assert cell.err.getvalue() == ""


def test_a_progress_bar_does_not_use_up_the_cap() -> None:
    cell = Cell(limit=100)
    for percent in range(1000):
        cell.write((ERR, f"\r{percent:4} per mille"))
    cell.write((OUT, "done\n"))
    assert cell.out.getvalue() == "done\n"
    assert "shown" not in cell.err.getvalue()


@pytest.mark.parametrize(
    ("pieces", "length"),
    [
        (["abc"], 3),
        (["abc\n", "de\n"], 7),
        (["abc\rde"], 3),
        (["abc\r", "defg"], 4),
        (["ab", "cd\re\n", "f"], 6),
        (["a\r\nb\r\n"], 4),
        (["10%\r20%\r30%\n", "ok\n"], 7),
    ],
)
def test_visible_length(pieces: list[str], length: int) -> None:
    visible = VisibleLength()
    for piece in pieces:
        visible.add(piece)
    assert visible.total == length


def test_a_flood_of_rewritten_lines_keeps_what_is_seen() -> None:
    flood = "".join(f"\r{n}" for n in range(10_000)) + "\nnext\r\nlast"
    assert last_writing(flood) == "\r9999\nnext\r\nlast"
    assert last_writing("a\rb") == "a\rb"
