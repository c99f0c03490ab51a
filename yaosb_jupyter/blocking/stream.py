"""`CommandStream`, blocking: a running command as an iterator of typed events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Generic, Self

from yaosb_jupyter.blocking.face import Face
from yaosb_jupyter.blocking.loop import Loop
from yaosb_jupyter.core.commands import command as asynchronous
from yaosb_jupyter.types import Exit, ExitStatus, Output, Text


class CommandStream(Face, Generic[Text]):
    """``for event in stream`` gives `Output` events and, last, one `Exit`; see the asynchronous `CommandStream`.

    Begun by ``with`` or by the iteration, whichever comes first; leaving either ends the command if it still runs.
    """

    def __init__(self, loop: Loop, inner: asynchronous.CommandStream[Text]) -> None:
        super().__init__(loop)
        self._inner: asynchronous.CommandStream[Text] = inner

    @property
    def offset(self) -> int:
        """Of the next byte of output, counting both outputs; 0 where the runtime cannot take commands up again."""
        return self._inner.offset

    @property
    def lost(self) -> int:
        """Bytes of a command in the background that were dropped before they could be read."""
        return self._inner.lost

    def __enter__(self) -> Self:
        self._run(self._inner.__aenter__)
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Output[Text] | Exit]:
        events: AsyncIterator[Output[Text] | Exit] = self._inner.__aiter__()
        with closing(self._iterate(lambda: events)) as iterator:
            for event in iterator:
                yield event
                while (output := asynchronous.take_now(self._inner)) is not None:
                    yield output

    def send(self, data: str | bytes) -> None:
        """Writes to the command's stdin (the stream must have been made with ``stdin=True``)."""
        self._run(lambda: self._inner.send(data))

    def close_stdin(self) -> None:
        """End of file for the command's stdin."""
        self._run(self._inner.close_stdin)

    def signal(self, signum: int) -> None:
        """Sends a signal to the command and all its descendants."""
        self._run(lambda: self._inner.signal(signum))

    def resize(self, columns: int, rows: int) -> None:
        """Changes the size of the command's terminal. Nothing happens without one."""
        self._run(lambda: self._inner.resize(columns, rows))

    def cancel(self, grace: float = 2.0) -> None:
        """Ends the command and all its descendants: SIGTERM, after ``grace`` seconds SIGKILL."""
        self._run(lambda: self._inner.cancel(grace))

    def wait(self) -> ExitStatus:
        """The exit status; output not taken by then is dropped."""
        return self._run(self._inner.wait)

    def close(self) -> None:
        """Ends the command if it runs; one in the background goes on. Idempotent."""
        self._run(self._inner.aclose)
