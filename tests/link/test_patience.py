"""Who rests when the time is over has it once more."""

from __future__ import annotations

import asyncio

import pytest

from yaosb_jupyter.link.patience import awake, never


async def test_the_time_is_over_once_the_rest_is() -> None:
    asked = []

    def resting() -> bool:
        asked.append(None)
        return len(asked) < 3

    with pytest.raises(TimeoutError):
        async with awake(0.02, resting):
            await asyncio.Event().wait()
    assert len(asked) == 3


async def test_who_is_in_time_is_not_bothered() -> None:
    async with awake(0.01, never):
        pass
    async with awake(None, never):
        await asyncio.sleep(0.03)
