"""The codec of guest, daemon and clients."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaosb_jupyter.guest import frames
from yaosb_jupyter.guest.frames import Decoder, Frame, FrameError

kinds = st.sampled_from(sorted(frames.KINDS))
frame_lists = st.lists(st.builds(Frame, kinds, st.integers(0, 2**32 - 1), st.binary(max_size=300)), max_size=20)


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    """``data`` in pieces of the given sizes, as a socket might give it."""
    pieces = []
    for size in cuts:
        pieces.append(data[:size])
        data = data[size:]
    return [*pieces, data]


@given(frame_lists, st.lists(st.integers(1, 50)))
def test_frames_come_out_as_they_went_in_wherever_the_stream_is_cut(sent: list[Frame], cuts: list[int]) -> None:
    data = b"".join(frames.encode(*frame) for frame in sent)
    decoder = Decoder()
    assert [frame for piece in cut(data, cuts) for frame in decoder.feed(piece)] == sent


@given(st.lists(st.binary(max_size=200)))
def test_any_bytes_give_frames_or_a_frame_error(pieces: list[bytes]) -> None:
    decoder = Decoder()
    try:
        for piece in pieces:
            for frame in decoder.feed(piece):
                assert frame.kind in frames.KINDS
                assert len(frame.payload) <= frames.MAX_PAYLOAD
    except FrameError:
        pass


@given(frame_lists, st.binary(min_size=1, max_size=60))
def test_what_came_before_the_rubbish_is_given(sent: list[Frame], rubbish: bytes) -> None:
    decoder = Decoder()
    received = list(decoder.feed(b"".join(frames.encode(*frame) for frame in sent)))
    try:
        list(decoder.feed(rubbish))
    except FrameError:
        pass
    assert received == sent


@given(st.binary(max_size=300))
def test_any_payload_is_an_object_or_a_frame_error(payload: bytes) -> None:
    try:
        assert isinstance(frames.decode_json(payload), dict)
    except FrameError:
        pass


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_is_a_frame_error(word: str) -> None:
    """A timer that is due at NaN would hold up all others."""
    with pytest.raises(FrameError, match="no number"):
        frames.decode_json(b'{"grace": %b}' % word.encode())


def test_deep_json_is_a_frame_error() -> None:
    with pytest.raises(FrameError, match="JSON"):
        frames.decode_json(b"[" * 100_000)


def test_the_largest_payload_passes_and_a_larger_one_does_not() -> None:
    payload = b"x" * frames.MAX_PAYLOAD
    assert list(Decoder().feed(frames.encode(frames.DATA, 1, payload))) == [Frame(frames.DATA, 1, payload)]
    with pytest.raises(FrameError, match="over the limit"):
        frames.encode(frames.DATA, 1, payload + b"x")
    with pytest.raises(FrameError, match="over the limit"):
        list(Decoder().feed(frames.header(frames.DATA, 1, frames.MAX_PAYLOAD + 1)))


def test_a_large_frame_is_refused_by_its_header_alone() -> None:
    with pytest.raises(FrameError):
        list(Decoder().feed(frames.header(frames.DATA, 1, 2**32 - 1)))


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(FrameError, match="99"):
        list(Decoder().feed(frames.header(99, 1, 0)))


@pytest.mark.parametrize("payload", [b"", b"\0\0\0", b"\0" * 5])
def test_a_credit_of_the_wrong_size_is_refused(payload: bytes) -> None:
    with pytest.raises(FrameError, match="credit"):
        frames.decode_credit(payload)


@given(st.integers(0, 2**32 - 1))
def test_a_credit_comes_out_as_it_went_in(count: int) -> None:
    (frame,) = Decoder().feed(frames.encode_credit(3, count))
    assert frames.decode_credit(frame.payload) == count
