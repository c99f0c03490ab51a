"""Starting and stopping sandboxes, and making their environments. One at a time for each sandbox: under its lock."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any, cast

from yaosb_jupyter.choices import Status
from yaosb_jupyter.core.entry import Entry
from yaosb_jupyter.core.names import environment_name
from yaosb_jupyter.core.naming import naming
from yaosb_jupyter.core.patience import ASK, CHANGE, within
from yaosb_jupyter.core.policy import Call, Verdict, refusal, verdict
from yaosb_jupyter.core.service import Progress
from yaosb_jupyter.core.state import State
from yaosb_jupyter.errors import (
    AlreadyExistsError,
    ImageNotFoundError,
    NotFoundError,
    NotRunningError,
    RuntimeUnavailableError,
    SandboxError,
)
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.types import LogChunk

_LAST_WORDS = 10  # lines of the main process told when it ends at once


class Operations:
    def __init__(self, state: State) -> None:
        self._state = state

    async def start(self, entry: Entry) -> None:
        """No-op when running; makes the environment anew where it vanished. Goes on when the caller is cancelled."""
        await self._state.tasks.finish(self._start(entry), f"starting {entry.record.id}")

    async def stop(self, entry: Entry, timeout: float | None = None) -> None:
        """No-op when not running. ``timeout`` seconds between SIGTERM and SIGKILL. Goes on when cancelled."""
        await self._state.tasks.finish(self._stop(entry, timeout), f"stopping {entry.record.id}")

    async def _start(self, entry: Entry) -> None:
        await entry.built()
        async with entry.lock:
            self._check(entry, Call.START)
            entry.activity.touch()
            if verdict(Call.START, entry.record.status) is Verdict.NOTHING:
                return
            before = entry.record
            try:
                with naming(entry):
                    changes = await self._start_or_make(entry)
            except BaseException as error:
                told = isinstance(error, SandboxError) and not isinstance(error, RuntimeUnavailableError)
                failed = {"status": Status.FAILED, "status_reason": f"cannot be started: {error}"}
                unchanged = {"status": before.status, "status_reason": before.status_reason}
                entry.update(**(failed if told else unchanged))
                raise
            await self._state.save(entry, **changes)
        entry.activity.touch()
        self._state.alarm.ring()

    async def _start_or_make(self, entry: Entry) -> dict[str, Any]:
        try:
            return await self.run(entry, entry.record.runtime_id)
        except NotFoundError:
            await in_thread(self._state.store.prepare, entry.record)
            runtime_id = await self.make(entry, None)
            return {**await self.run(entry, runtime_id), "runtime_id": runtime_id}

    async def _stop(self, entry: Entry, timeout: float | None) -> None:
        await entry.built()
        async with entry.lock:
            self._check(entry, Call.STOP)
            if verdict(Call.STOP, entry.record.status) is not Verdict.NOTHING:
                await self.halt(entry, timeout)
        self._state.alarm.ring()

    async def halt(self, entry: Entry, timeout: float | None = None, reason: str = "") -> None:
        """Stops a running environment. The caller holds the lock."""
        record = entry.record
        pool = self._state.pool_of(entry)
        runtime = pool.runtime
        grace = timeout if timeout is not None else record.options.stop_timeout or 0.0
        entry.update(status=Status.STOPPING, status_reason=reason)
        try:
            async with within(CHANGE + grace, "stop it", sandbox=record.id, pool=pool.name):
                await runtime.stop(record.runtime_id, grace)
        except NotFoundError:
            await self.vanished(entry, "its environment was removed by somebody else")
            return
        except BaseException:
            entry.update(status=record.status, status_reason=record.status_reason)
            raise
        await self._state.save(entry, status=Status.STOPPED, status_reason=reason, ip="", process_count=0)

    async def make(self, entry: Entry, progress: Progress | None) -> str:
        """Creates the environment, pulling its image where it is missing; returns the runtime id."""
        pool = self._state.pool_of(entry)
        record = entry.record
        try:
            return await self._create(entry)
        except ImageNotFoundError:
            # Not bounded: a pull takes as long as it takes, tells its progress, and can be cancelled.
            await pool.runtime.pull_image(record.options.image, progress)
        except AlreadyExistsError:
            # Another data directory's, or a name that only looks the same. Nothing depends on names.
            entry.update(name=environment_name(record.owner, record.options.chat or record.id, record.uid))
        return await self._create(entry)

    async def _create(self, entry: Entry) -> str:
        pool = self._state.pool_of(entry)
        async with within(CHANGE, "create it", sandbox=entry.record.id, pool=pool.name):
            runtime_id = await pool.runtime.create(self._state.spec_of(entry))
            await self.look_at(entry, runtime_id)
        return runtime_id

    async def look_at(self, entry: Entry, runtime_id: str) -> None:
        """Puts into the record what only the made environment tells: what it is kept from, whether it has a desktop."""
        pool = self._state.pool_of(entry)
        told = await pool.runtime.isolation(self._state.spec_of(entry), runtime_id)
        options = entry.record.options
        has_desktop = options.vnc and await pool.runtime.vnc_port(runtime_id) != 0
        entry.update(isolation=told or pool.host.info.isolation, options=replace(options, vnc=has_desktop))

    async def run(self, entry: Entry, runtime_id: str) -> dict[str, Any]:
        """Starts the environment; returns what changes in the record. Raises `NotRunningError` if it ends at once."""
        pool = self._state.pool_of(entry)
        runtime = pool.runtime
        entry.update(status=Status.STARTING, status_reason="")
        async with within(CHANGE, "start it", sandbox=entry.record.id, pool=pool.name):
            await runtime.start(runtime_id)
            state = await runtime.inspect(runtime_id)
        if state.status is not Status.RUNNING:
            words = await self._last_words(entry, runtime_id)
            raise NotRunningError(
                f"its main process ended at once: {state.reason or f'exit code {state.exit_code}'}{words}",
                sandbox=entry.record.id,
                hint="look at cmd and image",
            )
        return {
            "status": Status.RUNNING,
            "status_reason": "",
            "name": state.name or entry.record.name,
            "ip": state.ip,
            "ports": state.ports or entry.record.options.ports,
            "link": state.link,
        }

    async def vanished(self, entry: Entry, reason: str) -> None:
        """Notes that the environment is gone; files and record stay. The caller holds the lock."""
        await self._state.save(entry, status=Status.FAILED, status_reason=reason, ip="", process_count=0)

    async def _last_words(self, entry: Entry, runtime_id: str) -> str:
        pool = self._state.pool_of(entry)
        words = b""
        try:
            logs = cast(AsyncGenerator[LogChunk, None], pool.runtime.logs(runtime_id, tail=_LAST_WORDS))
            async with within(ASK, "give its log", pool=pool.name), aclosing(logs):
                async for chunk in logs:
                    words += chunk.data
        except SandboxError:
            return ""  # the end itself is what is told
        text = words[-2000:].decode(errors="replace").strip()
        return f"; it said: {text}" if text else ""

    def _check(self, entry: Entry, call: Call) -> None:
        record = entry.record
        error = refusal(call, record.status, sandbox=record.id, reason=record.status_reason)
        if error is not None:
            raise error
        if entry not in self._state.table or record.doomed:
            raise NotFoundError("it is being removed", sandbox=record.id, hint="create it again")
