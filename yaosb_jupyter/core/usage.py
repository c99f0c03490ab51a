"""Using sandboxes: commands, files, what they consume. What is real use counts as activity, looking does not."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, contextmanager
from datetime import datetime
from typing import cast

from yaosb_jupyter.checks import check_number
from yaosb_jupyter.choices import Lifecycle, Status, VncStatus
from yaosb_jupyter.core.commands.tracked import TrackedStream
from yaosb_jupyter.core.connections import TrackedByteStream
from yaosb_jupyter.core.entry import Entry
from yaosb_jupyter.core.files.tracked import TrackedVolume
from yaosb_jupyter.core.naming import name_by_id, naming
from yaosb_jupyter.core.observation import Observer
from yaosb_jupyter.core.patience import ASK, CHANGE, within
from yaosb_jupyter.core.policy import Call, Verdict, refusal, verdict
from yaosb_jupyter.core.removal import Remover
from yaosb_jupyter.core.state import State
from yaosb_jupyter.errors import (
    InvalidOptionError,
    NotAvailableError,
    NotFoundError,
    NotRunningError,
    SandboxError,
    SandboxLostError,
)
from yaosb_jupyter.options import ExecOptions, TerminalSize
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.proxy.tickets import Serve, Target
from yaosb_jupyter.tai.runtimes.base import Capability, ExecStream, Runtime
from yaosb_jupyter.tai.vnc.desktop import look, shown
from yaosb_jupyter.tai.vnc.desktop import serve as serve_desktop
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.types import CommandInfo, Desktop, LogChunk, SandboxStats


class Usage:
    def __init__(self, state: State, observer: Observer, remover: Remover) -> None:
        self._state = state
        self._observer = observer
        self._remover = remover
        self._streams: set[TrackedStream] = set()
        self._connections: set[ByteStream] = set()

    async def exec_stream(self, entry: Entry, options: ExecOptions) -> ExecStream:
        self._check(entry, Call.EXEC)
        runtime = self._state.pool_of(entry).runtime
        use = _CommandUse(self, entry)
        entry.activity.begin()
        try:
            inner = await runtime.exec_stream(entry.record.runtime_id, options)
        except BaseException as error:
            await self._state.tasks.finish(use.ended(), "ending the use of a sandbox")
            if isinstance(error, NotFoundError | NotRunningError):
                raise await self.explain(entry, error) from error
            raise
        return self._tracked(inner, use)

    def _tracked(self, inner: ExecStream, use: _CommandUse) -> TrackedStream:
        use.stream = TrackedStream(inner, use, self._state.tasks)
        self._streams.add(use.stream)
        return use.stream

    async def attach(self, entry: Entry, command_id: str, since: int | None, *, holds: bool) -> ExecStream:
        """Following a command in the background is no use; taking up again one in the foreground is."""
        async with self._commands(entry) as runtime:
            inner = await runtime.attach(entry.record.runtime_id, command_id, since, holds=holds)
        if not inner.background:
            entry.activity.begin()
        return self._tracked(inner, _CommandUse(self, entry, in_use=not inner.background))

    async def spawn(self, entry: Entry, options: ExecOptions) -> CommandInfo:
        if entry.record.options.lifecycle is Lifecycle.ONE_SHOT:
            raise InvalidOptionError(
                "a one-shot sandbox ends with its first command, and none can be left running in it",
                hint="use exec or stream, or another lifecycle",
            )
        with entry.activity.span():
            async with self._commands(entry) as runtime:
                return await runtime.spawn(entry.record.runtime_id, options)

    async def commands(self, entry: Entry) -> Sequence[CommandInfo]:
        async with self._commands(entry) as runtime:
            return await runtime.commands(entry.record.runtime_id)

    async def control(
        self, entry: Entry, command_id: str, *, signal: int | None, grace: float | None, size: TerminalSize | None
    ) -> None:
        with entry.activity.span():
            async with self._commands(entry) as runtime:
                await runtime.control(entry.record.runtime_id, command_id, signal=signal, grace=grace, size=size)

    @asynccontextmanager
    async def _commands(self, entry: Entry) -> AsyncIterator[Runtime]:
        self._check(entry, Call.EXEC)
        pool = self._state.pool_of(entry)
        async with (
            self._explained(entry),
            within(CHANGE, "tell of its commands", sandbox=entry.record.id, pool=pool.name),
        ):
            yield pool.runtime

    def let_go(self, stream: TrackedStream) -> None:
        self._streams.discard(stream)

    async def ended(self, entry: Entry) -> None:
        """A command has ended: the idle time begins, a one-shot sandbox is removed."""
        entry.activity.end()
        await self._remover.end_one_shot(entry)
        self._watch_idle(entry)

    def _watch_idle(self, entry: Entry) -> None:
        """What was in use has no deadline that the reaper could know of."""
        due = entry.due_in()
        if due is not None and entry in self._state.table:
            self._state.alarm.within(due)

    async def explain(self, entry: Entry, cause: SandboxError | None) -> SandboxError:
        """The error for a sandbox whose environment is not there as it should be, its state put right."""
        await self._refresh(entry)
        record = entry.record
        error = refusal(Call.EXEC, record.status, sandbox=record.id, reason=record.status_reason)
        return error or cause or NotRunningError("it was not running", sandbox=record.id, hint="try again")

    @asynccontextmanager
    async def _explained(self, entry: Entry) -> AsyncIterator[None]:
        try:
            yield
        except (NotFoundError, NotRunningError) as error:
            raise await self.explain(entry, error) from error

    async def _refresh(self, entry: Entry) -> None:
        try:
            await self._observer.refresh(entry)
        except SandboxError:
            pass  # what is known already is told

    async def lost(self, entry: Entry, cause: SandboxError | None) -> SandboxError | None:
        """See `CommandUse.lost`."""
        if cause is not None:
            name_by_id(cause, entry.record)
            if not isinstance(cause, NotFoundError | NotRunningError):
                return cause
        if not entry.lock.locked():  # else somebody is stopping or removing it, and its status tells
            await self._refresh(entry)
        record = entry.record
        if record.status in (Status.RUNNING, Status.PAUSED) and entry in self._state.table:
            return cause
        why = record.status_reason or _ENDS.get(record.status, f"it is {record.status.value}")
        gone = entry not in self._state.table or record.status in (Status.REMOVING, Status.REMOVED)
        hint = "create it again" if gone else "start it"
        return SandboxLostError(f"it ended while it was in use: {why}", sandbox=record.id, hint=hint)

    async def dial(self, entry: Entry, port: int) -> ByteStream:
        """A connection to a port inside; to get one is use of the sandbox, and so are the bytes that move.

        To be refused is none: a page left open that tries again and again keeps no sandbox.
        """
        check_number("port", port, 1, 65535)
        self._check(entry, Call.EXEC)
        pool = self._state.pool_of(entry)
        async with self._explained(entry), within(ASK, "connect", sandbox=entry.record.id, pool=pool.name):
            inner = await pool.runtime.dial(entry.record.runtime_id, port)
        entry.activity.touch()

        async def lost(error: SandboxError) -> SandboxError:
            return await self.lost(entry, error) or error

        stream = TrackedByteStream(inner, used=entry.activity.touch, closed=self._connections.discard, lost=lost)
        self._connections.add(stream)
        return stream

    async def proxy(self, entry: Entry, port: int, path: str) -> str:
        """The URL of a port inside; to ask for it is use, and so are the bytes that move through it."""
        check_number("port", port, 1, 65535)
        self._check(entry, Call.EXEC)
        self._check_dial(entry, port)
        entry.activity.touch()
        return await self._state.proxy.url(self._target(entry, port), path)

    def _target(self, entry: Entry, port: int, serve: Serve | None = None) -> Target:
        async def dial() -> ByteStream:
            with naming(entry):
                return await self.dial(entry, port)

        return Target(uid=entry.uid, name=entry.record.id, port=port, dial=dial, serve=serve)

    async def vnc(self, entry: Entry) -> Desktop:
        """To ask is no use, the bytes that move are."""
        status, port = await self.desktop(entry)
        return await shown(status, lambda: self._state.proxy.url(self._target(entry, port, serve_desktop)))

    async def desktop(self, entry: Entry) -> tuple[VncStatus, int]:
        """Whether it shows itself, and at which port inside."""
        record = entry.record
        pool = self._state.pool_of(entry)
        if not pool.connected or not record.runtime_id:
            return VncStatus.UNAVAILABLE, 0
        try:
            async with within(ASK, "tell of its desktop", sandbox=record.id, pool=pool.name):
                return await look(pool.runtime, record.runtime_id)
        except SandboxError:
            return VncStatus.UNAVAILABLE, 0

    def _check_dial(self, entry: Entry, port: int) -> None:
        """Raises `NotAvailableError` where no link would help, `RuntimeUnavailableError` where its host is away."""
        info = self._state.pool_of(entry).host.info
        published = any(each.container_port == port for each in entry.record.ports)
        if Capability.DIAL not in info.capabilities and not published:
            raise NotAvailableError(
                f"its ports cannot be reached on {info.kind} as it is here",
                sandbox=entry.record.id,
                hint=f"publish them: ports=[{port}]" if Capability.PORTS in info.capabilities else "see the pools",
            )

    async def kill_process(self, entry: Entry, pattern: str) -> Sequence[int]:
        """Pids of the processes ended. ``pattern`` is a regular expression over the full command line."""
        try:
            re.compile(pattern)
        except re.error as error:
            raise InvalidOptionError(
                f"pattern={pattern!r} is not valid: {error}", hint="a regular expression"
            ) from error
        if not pattern:
            raise InvalidOptionError("pattern='' would end everything", hint="name what to end, or stop the sandbox")
        self._check(entry, Call.EXEC)
        pool = self._state.pool_of(entry)
        with entry.activity.span():
            async with (
                self._explained(entry),
                within(CHANGE, "end processes", sandbox=entry.record.id, pool=pool.name),
            ):
                return await pool.runtime.kill_processes(entry.record.runtime_id, pattern)

    def heartbeat(self, entry: Entry, *, active: bool, process_count: int) -> None:
        if process_count < 0:
            raise InvalidOptionError(f"process_count={process_count} is not valid", hint="accepted: 0 or more")
        self._check(entry, Call.HEARTBEAT)
        if verdict(Call.HEARTBEAT, entry.record.status) is Verdict.NOTHING:
            return
        entry.update(process_count=process_count)
        if active:
            entry.activity.touch()

    async def stats(self, entry: Entry) -> SandboxStats:
        self._check(entry, Call.EXEC)
        pool = self._state.pool_of(entry)
        async with (
            self._explained(entry),
            within(ASK, "tell what it uses", sandbox=entry.record.id, pool=pool.name),
        ):
            return await pool.runtime.stats(entry.record.runtime_id)

    async def logs(
        self, entry: Entry, *, follow: bool, tail: int | None, since: datetime | None
    ) -> AsyncIterator[LogChunk]:
        self._check(entry, Call.LOGS)
        runtime = self._state.pool_of(entry).runtime
        chunks = runtime.logs(entry.record.runtime_id, follow=follow, tail=tail, since=since)
        with naming(entry):
            async with self._explained(entry), aclosing(cast(AsyncGenerator[LogChunk, None], chunks)) as given:
                async for chunk in given:
                    yield chunk

    def volume(self, entry: Entry) -> Volume:
        return TrackedVolume(lambda: self._files(entry))

    @contextmanager
    def _files(self, entry: Entry) -> Iterator[Volume]:
        self._check(entry, Call.FILES)
        spec = self._state.spec_of(entry)
        try:
            with naming(entry), entry.activity.span():
                yield self._state.pool_of(entry).runtime.volume(spec, entry.record.runtime_id)
        finally:
            self._watch_idle(entry)

    def _check(self, entry: Entry, call: Call) -> None:
        record = entry.record
        if entry not in self._state.table:
            raise NotFoundError("it was removed", sandbox=record.id, hint="create it again")
        error = refusal(call, record.status, sandbox=record.id, reason=record.status_reason)
        if error is not None:
            raise error

    async def close(self) -> None:
        """Ends the commands and connections whose callers are in this process: nobody is left to read them."""
        open_ones: list[TrackedStream | ByteStream] = [*self._streams, *self._connections]
        await asyncio.gather(*(stream.aclose() for stream in open_ones), return_exceptions=True)


_ENDS = {
    Status.STOPPING: "it was stopped",
    Status.STOPPED: "it was stopped",
    Status.REMOVING: "it was removed",
    Status.REMOVED: "it was removed",
}


class _CommandUse:
    """``in_use``: the command is a use of the sandbox, begun by `Activity.begin`."""

    def __init__(self, usage: Usage, entry: Entry, *, in_use: bool = True) -> None:
        self._usage = usage
        self._entry = entry
        self._in_use = in_use
        self.stream: TrackedStream | None = None

    async def ended(self) -> None:
        if self.stream is not None:
            self._usage.let_go(self.stream)
        if self._in_use:
            await self._usage.ended(self._entry)

    async def lost(self, cause: SandboxError | None) -> SandboxError | None:
        return await self._usage.lost(self._entry, cause)

    def naming(self) -> AbstractContextManager[None]:
        return naming(self._entry)
