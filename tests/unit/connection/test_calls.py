"""Calls over one connection, and their cancellation."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.connection.conftest import Listen, serve_anything
from yaosb_jupyter.link.connection import Connection, RemoteError, Stream, dial_unix


async def test_each_side_learns_the_hello_of_the_other(listen: Listen) -> None:
    peer = await listen()
    client = await dial_unix(peer.path, {"name": "client"})
    assert (await client.ready())["name"] == "peer"
    assert (await peer.accepted[0].ready())["name"] == "client"
    await client.close()


async def test_a_call_gives_its_result(client: Connection) -> None:
    assert await client.call("add", {"a": 1, "b": 2}) == {"sum": 3}


async def test_calls_do_not_wait_for_one_another(client: Connection) -> None:
    waiting = client.open("wait")
    assert await waiting.receive_message() == {"waiting": True}
    sums = await asyncio.gather(*(client.call("add", {"a": n, "b": n}) for n in range(100)))
    assert [answer["sum"] for answer in sums] == [2 * n for n in range(100)]


async def test_an_error_comes_with_its_fields(client: Connection) -> None:
    with pytest.raises(RemoteError, match="no such thing") as caught:
        await client.call("fail")
    assert (caught.value.code, caught.value.fields["hint"]) == ("NotFoundError", "look again")


async def test_a_handler_that_crashes_is_an_error_of_its_call_alone(client: Connection) -> None:
    with pytest.raises(RemoteError, match="ZeroDivisionError"):
        await client.call("crash")
    assert await client.call("add", {"a": 1, "b": 1}) == {"sum": 2}


async def test_a_handler_that_gives_nothing_closes_its_stream(client: Connection) -> None:
    assert await client.call("unknown") == {}


async def test_a_side_without_a_handler_refuses_streams(listen: Listen) -> None:
    peer = await listen(handler=None)
    client = await dial_unix(peer.path, {})
    with pytest.raises(RemoteError, match="no more streams"):
        await client.call("add")
    await client.close()


async def test_the_side_that_accepted_can_call_too(listen: Listen) -> None:
    peer = await listen()
    client = await dial_unix(peer.path, {}, serve_anything)
    assert await peer.accepted[0].call("add", {"a": 2, "b": 3}) == {"sum": 5}
    await client.close()


async def test_a_ping_is_answered(client: Connection) -> None:
    await asyncio.wait_for(client.ping(), 5)


async def test_cancelling_a_call_cancels_its_handler(listen: Listen) -> None:
    began, cancelled = asyncio.Event(), asyncio.Event()

    async def wait(stream: Stream) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    peer = await listen(wait)
    client = await dial_unix(peer.path, {})
    call = asyncio.create_task(client.call("wait"))
    await began.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(cancelled.wait(), 5)
    await client.close()


async def test_a_cancelled_stream_is_answered(client: Connection) -> None:
    stream = client.open("wait")
    await stream.receive_message()
    stream.cancel()
    with pytest.raises(RemoteError) as caught:
        await asyncio.wait_for(stream.result(), 5)
    assert caught.value.code == "Cancelled"


async def test_a_cancel_right_behind_the_open_is_answered_too(client: Connection) -> None:
    """The handler's task is cancelled before its first step."""
    stream = client.open("wait")
    stream.cancel()
    with pytest.raises(RemoteError) as caught:
        await asyncio.wait_for(stream.result(), 5)
    assert caught.value.code == "Cancelled"
