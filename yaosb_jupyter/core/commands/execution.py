"""Running one command to its end: input fed, output collected and passed on, the end judged."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypedDict

from yaosb_jupyter.checks import several
from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.core.commands.command import CommandStream, encoded
from yaosb_jupyter.core.commands.forwarding import ForwardingStream
from yaosb_jupyter.core.commands.output import DEFAULT_MAX_OUTPUT, Tail
from yaosb_jupyter.errors import ExecFailedError, ExecTimeoutError, OutputLimitExceededError
from yaosb_jupyter.options import ExecOptions, TerminalSize, TerminalSizeLike
from yaosb_jupyter.tai.runtimes.base import ExecStream
from yaosb_jupyter.types import ExecResult, Exit, ExitStatus, Text
from yaosb_jupyter.units import DurationLike, SizeLike, format_duration, format_size, parse_duration, parse_size

CommandLine = str | Sequence[str]
Stdin = str | bytes | AsyncIterable[bytes] | AsyncIterable[str]
OnOutput = Callable[[Text], object]

_PIECE = 1 << 20


class CommandFields(TypedDict, total=False):
    """How a command is run; see `ExecOptions`."""

    cwd: str
    env: Mapping[str, str]
    user: str
    timeout: DurationLike | None
    tty: TerminalSizeLike | None


class StreamFields(CommandFields, total=False):
    """``stdin``: whether input will be sent; ``errors`` as of `bytes.decode`."""

    stdin: bool
    errors: str


class ExecFields(CommandFields, total=False):
    """How a command is run and what is made of it.

    ``check`` raises `ExecFailedError` for a non-zero exit code. ``stdin`` text, bytes or an asynchronous iterable of
    them. ``max_output`` bytes of each output are kept, from the end (``ExecResult.truncated`` tells); with
    ``truncate=False`` a command that writes more is killed, which raises `OutputLimitExceededError`.
    """

    check: bool
    stdin: Stdin | None
    errors: str
    max_output: SizeLike
    truncate: bool


def exec_options(command: CommandLine, *, stdin: bool, fields: CommandFields) -> ExecOptions:
    """A string is for ``sh -c``, a list stays as it is. Raises `InvalidOptionError`."""
    argv = ("sh", "-c", command) if isinstance(command, str) else several("command", command)
    if isinstance(command, str) and not command.strip():
        argv = ()
    timeout = fields.get("timeout")
    tty = fields.get("tty")
    return ExecOptions(
        argv=argv,
        cwd=fields.get("cwd") or "",
        env=fields.get("env") or {},
        user=fields.get("user") or "",
        timeout=None if timeout is None else parse_duration(_seconds(timeout), "timeout") or None,
        stdin=stdin,
        tty=None if tty is None else TerminalSize.of(tty),
    )


def _seconds(value: DurationLike) -> DurationLike:
    return value.total_seconds() if isinstance(value, timedelta) else value


@dataclass(frozen=True, kw_only=True)
class Execution(Generic[Text]):
    """One run of one command. ``encoding`` None for bytes."""

    sandbox: str
    options: ExecOptions
    encoding: str | None
    errors: str = "replace"
    check: bool = False
    stdin: Stdin | None = None
    max_output: int = DEFAULT_MAX_OUTPUT
    truncate: bool = True
    on_stdout: OnOutput[Text] | None = None
    on_stderr: OnOutput[Text] | None = None

    async def run(self, begin: Callable[[ExecOptions], Awaitable[ExecStream]]) -> ExecResult[Text]:
        """Whatever happens, the command has ended when this returns or raises, unless the sandbox is out of reach."""
        tails: dict[ExecChannel, Tail] = {channel: Tail(self.max_output) for channel in ExecChannel}
        recorded = _Recorded(lambda: begin(self.options), tails, kill=not self.truncate)
        stream: CommandStream[Text] = CommandStream(recorded.begin, encoding=self.encoding, errors=self.errors)
        async with stream:
            if self.stdin is None:
                status = await self._pump(stream)
            else:
                status = await self._pump_and_feed(stream, self.stdin)
        result = self._result(status, tails)
        self._judge(result, status, recorded)
        return result

    async def _pump(self, stream: CommandStream[Text]) -> ExitStatus:
        callbacks = {ExecChannel.STDOUT: self.on_stdout, ExecChannel.STDERR: self.on_stderr}
        async for event in stream:
            if isinstance(event, Exit):
                return event.status
            callback = callbacks[event.channel]
            if callback is not None and inspect.isawaitable(given := callback(event.data)):
                await given
        raise AssertionError("a stream ends with an Exit event")

    async def _pump_and_feed(self, stream: CommandStream[Text], stdin: Stdin) -> ExitStatus:
        try:
            async with asyncio.TaskGroup() as group:
                feeder = group.create_task(self._feed(stream, stdin))
                status = await self._pump(stream)
                feeder.cancel()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return status

    async def _feed(self, stream: CommandStream[Text], stdin: Stdin) -> None:
        if isinstance(stdin, str | bytes):
            data = encoded(stdin, self.encoding or "utf-8") if isinstance(stdin, str) else stdin
            for start in range(0, len(data), _PIECE):
                await stream.send(data[start : start + _PIECE])
        else:
            async for piece in stdin:
                await stream.send(piece)
        await stream.close_stdin()

    def _result(self, status: ExitStatus, tails: Mapping[ExecChannel, Tail]) -> ExecResult[Text]:
        return ExecResult(
            exit_code=status.exit_code,
            stdout=tails[ExecChannel.STDOUT].decoded(self.encoding, self.errors),
            stderr=tails[ExecChannel.STDERR].decoded(self.encoding, self.errors),
            signal=status.signal,
            duration=status.duration,
            truncated=any(tail.dropped for tail in tails.values()),
            peak_memory=status.peak_memory,
            cpu_time=status.cpu_time,
            out_of_memory=status.out_of_memory,
        )

    def _judge(self, result: ExecResult[Text], status: ExitStatus, recorded: _Recorded) -> None:
        if recorded.over_limit:
            raise OutputLimitExceededError(
                f"the command wrote more than {format_size(self.max_output)} and was killed",
                result=result,
                sandbox=self.sandbox,
                hint="the last part is in the error's result; raise max_output, or write to a file",
            )
        if status.timed_out:
            raise ExecTimeoutError(
                f"the command ran longer than {format_duration(self.options.timeout or 0.0)} and was killed",
                result=result,
                sandbox=self.sandbox,
                hint="what it wrote is in the error's result",
            )
        if self.check and result.exit_code:
            raise ExecFailedError(
                f"the command ended with exit code {result.exit_code}{_last_line(result)}",
                result=result,
                sandbox=self.sandbox,
                hint=memory_hint(status),
            )


class _Recorded(ForwardingStream):
    """Keeps the end of what passes through; with ``kill`` ends the command once a tail has to drop something."""

    def __init__(
        self, begin: Callable[[], Awaitable[ExecStream]], tails: Mapping[ExecChannel, Tail], *, kill: bool
    ) -> None:
        self._begin = begin
        self._tails = tails
        self._kill = kill
        self.over_limit = False

    async def begin(self) -> ExecStream:
        self._inner = await self._begin()
        return self

    async def receive(self) -> tuple[ExecChannel, bytes] | None:
        chunk = await self._inner.receive()
        if chunk is not None:
            tail = self._tails[chunk[0]]
            tail.add(chunk[1])
            if self._kill and tail.dropped and not self.over_limit:
                self.over_limit = True
                await self._inner.cancel(0.0)
        return chunk


def memory_hint(status: ExitStatus) -> str | None:
    """What to do about a command that the sandbox had no memory for."""
    return "it was killed for want of memory: create the sandbox with more" if status.out_of_memory else None


def _last_line(result: ExecResult[Text]) -> str:
    text = result.stderr if isinstance(result.stderr, str) else result.stderr.decode(errors="replace")
    lines = text.strip().splitlines()
    return f": {lines[-1][:300]}" if lines else ""


def max_output_of(value: SizeLike | None) -> int:
    return DEFAULT_MAX_OUTPUT if value is None else parse_size(value, "max_output")
