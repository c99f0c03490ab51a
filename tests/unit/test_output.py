import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaosb_jupyter.core.commands.output import Tail, decoder


@given(st.text(), st.integers(1, 7))
def test_x8_decoding_does_not_depend_on_the_chunks(text: str, size: int) -> None:
    data = text.encode("utf-8", "surrogatepass")
    decode = decoder("utf-8", "surrogatepass")
    pieces = [decode(data[start : start + size], False) for start in range(0, len(data), size)]
    assert "".join([*pieces, decode(b"", True)]) == text


def test_x17_bytes_stay_bytes() -> None:
    decode = decoder(None, "strict")
    assert decode(b"\xff\x00", False) + decode(b"", True) == b"\xff\x00"


def test_what_is_cut_short_is_told_at_the_end() -> None:
    decode = decoder("utf-8", "replace")
    assert decode(b"a\xc3", False) + decode(b"", True) == "a\ufffd"


@given(st.lists(st.binary(max_size=20)), st.integers(0, 40))
def test_a_tail_is_the_end(chunks: list[bytes], limit: int) -> None:
    tail = Tail(limit)
    for chunk in chunks:
        tail.add(chunk)
    whole = b"".join(chunks)
    kept = tail.decoded(None, "strict")
    assert kept == (whole[-limit:] if limit else b"")
    assert tail.dropped == len(whole) - len(kept)


@pytest.mark.parametrize("limit", range(1, 9))
def test_a_tail_of_text_begins_with_a_whole_character(limit: int) -> None:
    tail = Tail(limit)
    tail.add("é€😀".encode())
    assert "\ufffd" not in tail.decoded("utf-8", "replace")
