"""Descriptors lent to a client for as long as a request lasts; both ends.

The daemon answers with a message ``{"descriptor": TOKEN}``; the client claims the descriptor, uses it, and ends
its data when it is done. Until then, or until the client cancels or leaves, the request is under way, and a use.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from yaosb_jupyter.daemon.line import Line, read_value, told
from yaosb_jupyter.daemon.offers import Offer
from yaosb_jupyter.daemon.requests import Request
from yaosb_jupyter.daemon.streaming import received
from yaosb_jupyter.link.stream import Stream
from yaosb_jupyter.tai.threads import in_thread


async def lend(stream: Stream, offered: AbstractContextManager[Offer]) -> None:
    """Returns when the client has given the descriptor back. Raises `AuthError` where it does not come for it."""
    with offered as offer:
        await stream.send_message({"descriptor": offer.token})
        await offer.taken()
    async for _ in received(stream):
        pass  # until its EOF


@dataclass(frozen=True, kw_only=True)
class Loan:
    """``descriptor`` is open until the loan ends."""

    descriptor: int
    stream: Stream
    request: Request

    async def give_back(self) -> Any:
        """Tells that all is done; what the daemon answers."""
        await self.stream.send_eof()
        with told(self.request):
            return await read_value(self.stream)


@asynccontextmanager
async def borrowed(line: Line, request: Request) -> AsyncIterator[Loan | None]:
    """What the daemon lends on ``request``; None where it has no descriptor of it. Ends the request."""
    if not await line.passes_descriptors():
        yield None
        return
    stream = await line.open(request)
    loan = None
    try:
        with told(request):
            if (message := await stream.receive_message()) is None:
                await stream.result()
            else:
                descriptor = await line.claim(str(message["descriptor"]))
                loan = Loan(descriptor=descriptor, stream=stream, request=request)
        yield loan
    finally:
        if loan is not None:
            await in_thread(os.close, loan.descriptor)
        stream.cancel()
