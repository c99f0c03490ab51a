"""What a host may not say to a guest costs the link, no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.link.inprocess import HELLO, InProcessGuest
from yaosb_jupyter.guest import frames

PING = frames.encode(frames.PING, 0, b"there?")
PONG = frames.Frame(frames.PONG, 0, b"there?")


@pytest.mark.parametrize(
    "said",
    [
        HELLO,
        frames.encode_json(frames.OPEN, 2, {"op": "exec", "exec_id": "a", "argv": ["x"], "timeout": float("nan")}),
        frames.encode(frames.OPEN, 2, b'{"op":' + b"[" * 100_000),
        frames.encode(frames.OPEN, 2, b'{"op": "\xff"}'),
    ],
    ids=["a second HELLO", "a time that is no number", "deep JSON", "no UTF-8"],
)
def test_the_link_ends_and_the_next_one_comes(said: bytes, tmp_path: Path) -> None:
    guest = InProcessGuest(str(tmp_path))
    try:
        guest.feed(HELLO + said)
        guest.step()
        assert guest.said() is None
        guest.connect()
        guest.feed(HELLO + PING)
        guest.step()
        assert PONG in (guest.said() or ())
        assert guest.errors == []
    finally:
        guest.close()
