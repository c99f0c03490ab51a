"""Running a script in a sandbox: the file placed, its output passed on, the interrupt, the end judged."""

from __future__ import annotations

import asyncio
import posixpath
import secrets
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import anyio

from yaosb_jupyter.core.command import CommandStream
from yaosb_jupyter.core.execution import CommandFields
from yaosb_jupyter.core.output import Tail
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import ExecFailedError, ExecTimeoutError, NotFoundError, PathError, SandboxError
from yaosb_jupyter.jupyter.events import Event
from yaosb_jupyter.jupyter.mailbox import Mailbox
from yaosb_jupyter.jupyter.output import KEPT
from yaosb_jupyter.jupyter.script import language
from yaosb_jupyter.types import ExecChannel, ExecResult, Exit, ExitStatus
from yaosb_jupyter.units import format_duration

# An interrupted command gets SIGINT and has this long, the way to it included, before it is killed: it is gone 300 ms
# after the interrupt, and has time for its last words all the same.
_LAST_WORDS = 0.15
_FEW_WORDS = 0.05
_CLEANUP = 2.0


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


async def run_script(sandbox: AsyncSandbox, script: Script, mailbox: Mailbox[Event]) -> ExecResult[str]:
    """Runs it to its end and gives its result, whatever the exit code.

    Cancelled, it interrupts the command and ends when that has ended. Raises `ExecTimeoutError`, `SandboxLostError`,
    `NotRunningError`, `PathError`.
    """
    spoken = language(script.lang)
    directory = await _directory(sandbox, script.cwd)
    name = f".cell-{secrets.token_hex(4)}{spoken.suffix}"
    path = posixpath.join(directory, name)
    await sandbox.files.write(path, script.body, mode=0o644)
    try:
        return await _run(sandbox, spoken.argv(name), script, mailbox)
    finally:
        with anyio.move_on_after(_CLEANUP, shield=True), suppress(SandboxError):  # gone with a one-shot sandbox
            await sandbox.files.remove(path)


def raise_for_exit(result: ExecResult[str], sandbox: str) -> None:
    """Raises `ExecFailedError` for a non-zero exit code."""
    if result.exit_code:
        killed = f" (killed by signal {result.signal})" if result.signal else ""
        raise ExecFailedError(
            f"the command ended with exit code {result.exit_code}{killed}",
            result=result,
            sandbox=sandbox,
            hint="its output is in _sb; --no-raise goes on all the same",
        )


async def _directory(sandbox: AsyncSandbox, cwd: str) -> str:
    """Where in the workspace the script lies: beside what it imports, where that is there."""
    if cwd:
        with suppress(NotFoundError, PathError):  # a working directory outside of the workspace
            if (await sandbox.files.stat(cwd)).is_dir:
                return cwd
    return ""


async def _run(
    sandbox: AsyncSandbox, argv: tuple[str, ...], script: Script, mailbox: Mailbox[Event]
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
            raise
        finally:
            for task in (pump, feed):
                task.cancel()
        status = pump.result()
    result = ExecResult(
        exit_code=status.exit_code,
        stdout=kept[ExecChannel.STDOUT].decoded("utf-8", "replace"),
        stderr=kept[ExecChannel.STDERR].decoded("utf-8", "replace"),
        signal=status.signal,
        duration=status.duration,
        truncated=any(tail.dropped for tail in kept.values()),
    )
    if status.timed_out:
        limit = format_duration(script.timeout or 0.0)
        raise ExecTimeoutError(f"the command ran longer than {limit} and was killed", result=result, sandbox=sandbox.id)
    return result


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
