"""Running a script in a sandbox: the file placed, its output passed on, the interrupt, the end judged."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import anyio

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.core.commands.command import CommandStream
from yaosb_jupyter.core.commands.execution import CommandFields
from yaosb_jupyter.core.commands.output import Tail
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import ExecFailedError, ExecTimeoutError, SandboxError
from yaosb_jupyter.jupyter.events import Event
from yaosb_jupyter.jupyter.mailbox import Mailbox
from yaosb_jupyter.jupyter.output import KEPT
from yaosb_jupyter.jupyter.script import language
from yaosb_jupyter.jupyter.scriptfiles import ScriptFiles
from yaosb_jupyter.types import ExecResult, Exit, ExitStatus
from yaosb_jupyter.units import format_duration

# An interrupted command gets SIGINT and has this long, the way to it included, before it is killed: it is gone 300 ms
# after the interrupt, and has time for its last words all the same.
_LAST_WORDS = 0.15
_FEW_WORDS = 0.05
_KILLED = ExitStatus(exit_code=128 + signal.SIGKILL, signal=signal.SIGKILL)

Keep = Callable[[ExecResult[str]], None]
"""Gets the result of a command as soon as it has ended, however it ended; called on the loop."""


@dataclass(frozen=True, kw_only=True)
class Script:
    """A body and how it is run. ``timeout`` seconds; ``cwd`` of the sandbox."""

    body: str
    lang: str = ""
    cwd: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    timeout: float | None = None
    stdin: bytes | None = None

    def fields(self) -> CommandFields:
        # Programs that buffer when they write to no terminal would show nothing until they end.
        env = {"PYTHONUNBUFFERED": "1", **self.env}
        return {"cwd": self.cwd, "env": env, "user": self.user, "timeout": self.timeout}


async def run_script(
    sandbox: AsyncSandbox, script: Script, files: ScriptFiles, mailbox: Mailbox[Event], keep: Keep
) -> ExecResult[str]:
    """Runs it to its end and gives its result, whatever the exit code.

    Cancelled, it interrupts the command and ends when that has ended. Raises `ExecTimeoutError`, `SandboxLostError`,
    `NotRunningError`, `PathError`.
    """
    spoken = language(script.lang)
    async with files.place(sandbox, script.body, cwd=script.cwd, suffix=spoken.suffix) as name:
        return await _run(sandbox, spoken.argv(name), script, mailbox, keep)


def raise_for_exit(result: ExecResult[str], sandbox: str) -> None:
    """Raises `ExecFailedError` for a non-zero exit code."""
    if result.exit_code:
        killed = f" (killed by signal {result.signal})" if result.signal else ""
        killed = " (killed for want of memory)" if result.out_of_memory else killed
        raise ExecFailedError(
            f"the command ended with exit code {result.exit_code}{killed}",
            result=result,
            sandbox=sandbox,
            hint="its output is in _sb; --no-raise goes on all the same",
        )


async def _run(
    sandbox: AsyncSandbox, argv: tuple[str, ...], script: Script, mailbox: Mailbox[Event], keep: Keep
) -> ExecResult[str]:
    kept = {channel: Tail(KEPT) for channel in ExecChannel}
    async with sandbox.stream(argv, stdin=script.stdin is not None, **script.fields()) as stream:
        # A task of its own: it goes on with the last words of a command that is being interrupted.
        pump = asyncio.create_task(_pump(stream, kept, mailbox))
        feed = asyncio.create_task(_feed(stream, script.stdin))
        try:
            await asyncio.wait({pump})
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await _interrupt(stream, pump)
            told = pump.done() and not pump.cancelled() and pump.exception() is None
            keep(_result(pump.result() if told else _KILLED, kept))
            raise
        finally:
            for task in (pump, feed):
                task.cancel()
        status = pump.result()
    result = _result(status, kept)
    keep(result)
    if status.timed_out:
        limit = format_duration(script.timeout or 0.0)
        raise ExecTimeoutError(f"the command ran longer than {limit} and was killed", result=result, sandbox=sandbox.id)
    return result


def _result(status: ExitStatus, kept: Mapping[ExecChannel, Tail]) -> ExecResult[str]:
    return ExecResult(
        exit_code=status.exit_code,
        stdout=kept[ExecChannel.STDOUT].decoded("utf-8", "replace"),
        stderr=kept[ExecChannel.STDERR].decoded("utf-8", "replace"),
        signal=status.signal,
        duration=status.duration,
        truncated=any(tail.dropped for tail in kept.values()),
        peak_memory=status.peak_memory,
        cpu_time=status.cpu_time,
        out_of_memory=status.out_of_memory,
    )


async def _pump(stream: CommandStream[str], kept: Mapping[ExecChannel, Tail], mailbox: Mailbox[Event]) -> ExitStatus:
    async for event in stream:
        if isinstance(event, Exit):
            return event.status
        kept[event.channel].add(event.data.encode())
        await mailbox.put(event, weight=len(event.data))
    raise AssertionError("a stream ends with an Exit event")


async def _feed(stream: CommandStream[str], data: bytes | None) -> None:
    if data is None:
        return
    for start in range(0, len(data), 2**20):
        await stream.send(data[start : start + 2**20])
    await stream.close_stdin()


async def _interrupt(stream: CommandStream[str], pump: asyncio.Task[ExitStatus]) -> None:
    began = time.monotonic()
    with suppress(SandboxError):  # it is ended with the sandbox, or was at its end
        await stream.signal(signal.SIGINT)
        left = _LAST_WORDS - (time.monotonic() - began)
        await asyncio.wait({pump}, timeout=max(left, _FEW_WORDS))
        await stream.cancel(0.0)
        await asyncio.wait({pump}, timeout=_FEW_WORDS)
