"""One command as a stream of typed events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Generic, Self

from yaosb_jupyter.checks import check_number
from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.core.commands.output import decoder
from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.options import TerminalSize
from yaosb_jupyter.tai.runtimes.base import ExecStream
from yaosb_jupyter.types import Exit, ExitStatus, Output, Text

MAX_GRACE = 86400.0


class CommandStream(Generic[Text]):
    """A running command: ``async for event in stream`` gives `Output` events and, last, one `Exit`.

    Events come in the order of the command's writing; once it has written 1 MiB of stdout, in that of each output.

    Begun by ``async with`` or by the iteration, whichever comes first; leaving either ends the command if it still
    runs. A command that could not be started raises `CommandNotFoundError`, a sandbox that vanished `SandboxLostError`.
    """

    def __init__(
        self,
        begin: Callable[[], Awaitable[ExecStream]],
        *,
        encoding: str | None,
        errors: str = "replace",
        on_close: Callable[[CommandStream[Any]], None] | None = None,
    ) -> None:
        self._begin = begin
        self._on_close = on_close
        self._inner: ExecStream | None = None
        try:
            self._decode = {channel: decoder(encoding, errors) for channel in ExecChannel}
        except LookupError as error:
            raise InvalidOptionError(f"encoding={encoding!r} is not known", hint="utf-8, or None for bytes") from error
        self._encoding = encoding or "utf-8"

    @property
    def offset(self) -> int:
        """Of the next byte of output, counting both outputs; 0 where the runtime cannot take commands up again."""
        return 0 if self._inner is None else self._inner.offset

    @property
    def lost(self) -> int:
        """Bytes of a command in the background that were dropped before they could be read."""
        return 0 if self._inner is None else self._inner.lost

    async def __aenter__(self) -> Self:
        await self._opened()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def __aiter__(self) -> AsyncIterator[Output[Text] | Exit]:
        inner = await self._opened()
        try:
            while (chunk := await inner.receive()) is not None:
                channel, data = chunk
                if piece := self._decode[channel](data, False):
                    yield Output(channel=channel, data=piece)
            for channel in ExecChannel:
                if piece := self._decode[channel](b"", True):
                    yield Output(channel=channel, data=piece)
            yield Exit(status=await inner.wait())
        finally:
            await self.aclose()

    async def send(self, data: str | bytes) -> None:
        """Writes to the command's stdin (the stream must have been made with ``stdin=True``)."""
        inner = await self._opened()
        await inner.send(encoded(data, self._encoding) if isinstance(data, str) else data)

    async def close_stdin(self) -> None:
        """End of file for the command's stdin."""
        await (await self._opened()).close_stdin()

    async def signal(self, signum: int) -> None:
        """Sends a signal to the command and all its descendants."""
        check_signal(signum)
        await (await self._opened()).signal(signum)

    async def resize(self, columns: int, rows: int) -> None:
        """Changes the size of the command's terminal. Nothing happens without one."""
        await (await self._opened()).resize(TerminalSize(columns=columns, rows=rows))

    async def cancel(self, grace: float = 2.0) -> None:
        """Ends the command and all its descendants: SIGTERM, after ``grace`` seconds SIGKILL."""
        check_grace(grace)
        await (await self._opened()).cancel(grace)

    async def wait(self) -> ExitStatus:
        """The exit status; output not taken by then is dropped."""
        return await (await self._opened()).wait()

    async def aclose(self) -> None:
        """Ends the command if it runs; one in the background goes on. Idempotent."""
        try:
            if self._inner is not None:
                await self._inner.aclose()
        finally:
            if self._on_close is not None:
                self._on_close(self)

    async def _opened(self) -> ExecStream:
        if self._inner is None:
            self._inner = await self._begin()
        return self._inner


def check_signal(signum: object) -> None:
    """Raises `InvalidOptionError`."""
    check_number("signum", signum, 1, 64)


def check_grace(grace: object) -> None:
    """Raises `InvalidOptionError`."""
    check_number("grace", grace, 0, MAX_GRACE, whole=False)


def take_now(stream: CommandStream[Text]) -> Output[Text] | None:
    """What can be had without the loop, in any thread, while the iteration waits to go on; else None."""
    inner = stream._inner
    while inner is not None and (chunk := inner.receive_now()) is not None:
        channel, data = chunk
        if piece := stream._decode[channel](data, False):
            return Output(channel=channel, data=piece)
    return None


def encoded(text: str, encoding: str) -> bytes:
    """Text for a stdin. Raises `InvalidOptionError` where the encoding has no bytes for it."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        raise InvalidOptionError(f"stdin: {error}", hint="give bytes, or an encoding that has it") from error
