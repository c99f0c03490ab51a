"""Event streams by the HTML standard's rules (FAULTS N3); the examples are the standard's own."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from yaosb_jupyter.tai.connect.sse import EventParser, EventTooLarge
from yaosb_jupyter.types import ServerEvent


def parse(data: str | bytes) -> list[ServerEvent]:
    return EventParser().feed(data.encode() if isinstance(data, str) else data)


def message(data: str, event: str = "message", id: str = "") -> ServerEvent:
    return ServerEvent(data=data, event=event, id=id)


def test_n3_several_data_lines_are_one_event() -> None:
    assert parse("data: YHOO\ndata: +2\ndata: 10\n\n") == [message("YHOO\n+2\n10")]


def test_n3_comments_ids_and_an_event_that_is_not_finished() -> None:
    stream = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event"
    assert parse(stream) == [message("first event", id="1"), message("second event")]


def test_n3_empty_data_is_an_event_and_no_data_is_none() -> None:
    assert parse("data\n\ndata\ndata\n\ndata:") == [message(""), message("\n")]
    assert parse("event: lost\nid: 7\n\ndata: next\n\n") == [message("next", id="7")]


def test_n3_one_space_after_the_colon_goes() -> None:
    assert parse("data:test\n\ndata: test\n\ndata:  test\n\n") == [message("test"), message("test"), message(" test")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_n3_lines_end_in_three_ways(end: str) -> None:
    assert parse(f"event: add{end}data: 73{end}id: x{end}{end}") == [message("73", "add", "x")]


def test_n3_the_type_holds_for_one_event_and_the_id_until_the_next() -> None:
    events = parse("event: add\nid: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n")
    assert events == [message("a", "add", "1"), message("b", id="1"), message("c")]


def test_n3_an_id_with_nul_is_ignored() -> None:
    assert parse("id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n")[1] == message("b", id="1")


@pytest.mark.parametrize(("value", "seconds"), [("1500", 1.5), ("0", 0.0), ("1e3", None), ("-1", None), ("", None)])
def test_n3_retry_is_digits(value: str, seconds: float | None) -> None:
    parser = EventParser()
    parser.feed(f"retry: {value}\n\n".encode())
    assert parser.retry == seconds


def test_a_retry_of_many_digits_is_no_error() -> None:
    parser = EventParser()
    parser.feed(b"retry: " + b"9" * 5000 + b"\n\n")
    assert parser.retry is not None


def test_n3_one_byte_order_mark_goes() -> None:
    assert parse(b"\xef\xbb\xbfdata: a\n\n") == [message("a")]
    assert parse(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n") == []


def test_unknown_fields_and_other_spellings_are_ignored() -> None:
    assert parse("Data: a\ndata : b\nnothing\ndata: c\n\n") == [message("c")]


def test_what_is_not_utf8_is_replaced() -> None:
    assert parse(b"data: a\xff\xc3b\n\n") == [message("a\ufffd\ufffdb")]


def test_a_later_stream_knows_the_last_id() -> None:
    parser = EventParser(last_event_id="7")
    assert parser.feed(b"data: a\n\n") == [message("a", id="7")]


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 200, b"data: xxxxxx\n" * 40, b":" + b"x" * 200])
def test_an_event_or_a_line_without_end_is_refused(stream: bytes) -> None:
    parser = EventParser(max_size=150)
    with pytest.raises(EventTooLarge):
        for start in range(0, len(stream), 7):
            parser.feed(stream[start : start + 7])


PIECES = ["data", "event", "id", "retry", ":", " ", "\r", "\n", "\r\n", "\0", "\ufeff", "é", "\U0001f600", "12", "x"]
STREAMS = st.lists(st.sampled_from(PIECES) | st.text(max_size=3)).map("".join)


@given(STREAMS, st.lists(st.integers(0, 200), max_size=12))
@example("data: a\r\n\r\ndata: b\r\r", [9, 10])
@example("\ufeffdata: é\n\n", [1, 10])
def test_n3_wherever_the_bytes_are_cut_the_events_are_the_same(stream: str, cuts: list[int]) -> None:
    data = stream.encode()
    whole = EventParser()
    expected = whole.feed(data)
    parser = EventParser()
    borders = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in pairwise(borders)]
    assert [event for piece in pieces for event in parser.feed(piece)] == expected
    assert (parser.last_event_id, parser.retry) == (whole.last_event_id, whole.retry)


@given(STREAMS)
def test_n3_the_events_are_those_of_the_standard_read_word_for_word(stream: str) -> None:
    assert EventParser().feed(stream.encode()) == word_for_word(stream)


def word_for_word(stream: str) -> list[ServerEvent]:
    """The standard's algorithm over the whole stream at once, as it is written there."""
    stream = stream.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    events = []
    data = event = id_buffer = ""
    for line in stream.split("\n")[:-1]:
        if line == "":
            if data != "":
                events.append(message(data.removesuffix("\n"), event or "message", id_buffer))
            data = event = ""
        elif not line.startswith(":"):
            field, value = line.split(":", 1) if ":" in line else (line, "")
            value = value.removeprefix(" ")
            if field == "event":
                event = value
            elif field == "data":
                data += value + "\n"
            elif field == "id" and "\0" not in value:
                id_buffer = value
    return events
