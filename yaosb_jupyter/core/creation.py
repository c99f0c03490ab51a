"""Creating sandboxes. The intent is recorded before the engine is called; what fails or is cancelled is undone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from yaosb_jupyter.choices import Status
from yaosb_jupyter.core.defaults import complete, differences, unheeded
from yaosb_jupyter.core.entry import Entry
from yaosb_jupyter.core.limits import check_limits
from yaosb_jupyter.core.names import chat_id, check_owner, environment_name, new_id, new_uid
from yaosb_jupyter.core.naming import naming
from yaosb_jupyter.core.operations import Operations
from yaosb_jupyter.core.patience import ASK, within
from yaosb_jupyter.core.pool import Pool
from yaosb_jupyter.core.removal import Remover
from yaosb_jupyter.core.service import Caller, Progress
from yaosb_jupyter.core.state import State
from yaosb_jupyter.errors import (
    InvalidOptionError,
    NotFoundError,
    PermissionDeniedError,
    PoolNotFoundError,
    SandboxError,
)
from yaosb_jupyter.options import CreateOptions
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.types import SandboxRecord


class Creator:
    def __init__(self, state: State, operations: Operations, remover: Remover) -> None:
        self._state = state
        self._operations = operations
        self._remover = remover

    async def create(
        self, options: CreateOptions, caller: Caller, progress: Progress | None
    ) -> tuple[Entry, tuple[str, ...]]:
        """Admits, records, builds; on failure or cancellation nothing is left and the slot is free again.

        Also returns what of ``options`` could not be heeded.
        """
        return await self._create(await self._prepared(options, caller), progress)

    async def _create(self, options: CreateOptions, progress: Progress | None) -> tuple[Entry, tuple[str, ...]]:
        entry, pool = self._admit(await self._with_image(options))
        info = pool.host.info
        entry.build = self._state.tasks.start(self._build(entry, progress), f"creating {entry.record.id}")
        try:
            await entry.build
        except asyncio.CancelledError:
            if not _caller_cancelled():
                raise _removed_meanwhile(entry, pool) from None
            if entry.record.runtime_id and not entry.record.doomed:
                await self._remover.remove(entry)  # the cancellation came as the build ended
            raise
        finally:
            entry.build = None
            self._state.alarm.ring()
            if not entry.record.runtime_id and not entry.record.doomed:
                self._state.table.drop(entry)  # cancelled before the build had begun
        return entry, unheeded(options, entry.record.options, info)

    async def get_or_create(
        self, options: CreateOptions, caller: Caller, progress: Progress | None
    ) -> tuple[Entry, tuple[str, ...]]:
        """The existing sandbox, running, with what it has otherwise than asked; else a new one."""
        options = await self._prepared(options, caller)
        while True:
            entry = self._existing(options)
            if entry is None:
                return await self._create(options, progress)
            await entry.built()
            if entry not in self._state.table or entry.record.doomed:
                continue
            if options.start:
                await self._operations.start(entry)
            return entry, differences(options, entry.record.options)

    def _existing(self, options: CreateOptions) -> Entry | None:
        entry = self._state.table.of(options.owner, options.id)
        if entry is None and options.chat:
            entry = self._state.table.of_chat(options.owner, options.chat)
        return None if entry is not None and entry.record.doomed else entry

    async def _prepared(self, options: CreateOptions, caller: Caller) -> CreateOptions:
        options = self._identify(options, caller)
        await asyncio.to_thread(check_workspace, options.workspace, self._state.store.data_dir)
        return options

    def _identify(self, options: CreateOptions, caller: Caller) -> CreateOptions:
        owner = options.owner or caller.owner
        check_owner(owner)
        if owner != caller.owner and not caller.admin:
            raise PermissionDeniedError(f"only an admin may name another owner ({owner!r})", hint="leave owner out")
        if options.workspace and not (caller.admin or caller.owner == self._state.settings.owner):
            raise PermissionDeniedError(
                "a directory of the host as workspace is for the manager's own user", hint="leave workspace out"
            )
        id = options.id or (chat_id(owner, options.chat) if options.chat else new_id())
        return replace(options, owner=owner, id=id)

    async def _with_image(self, options: CreateOptions) -> CreateOptions:
        """Which image is the default may change while the manager runs: one of ours has been built."""
        pool = self._state.pools.get(options.pool)
        if options.image or pool.spec.image or self._state.settings.image:
            return options
        async with within(ASK, "tell its images", sandbox=options.id, pool=pool.name):
            return replace(options, image=await pool.runtime.default_image(desktop=options.vnc))

    def _admit(self, options: CreateOptions) -> tuple[Entry, Pool]:
        # No await in here: that is what makes limits and ids hold under concurrent creates.
        pool = self._state.pools.get(options.pool)
        info = pool.host.info
        table, settings = self._state.table, self._state.settings
        table.check_free(options.owner, options.id)
        check_limits(
            (entry.record for entry in table),
            pool=pool.spec,
            owner=options.owner,
            max_sandboxes=settings.max_sandboxes,
        )
        now = self._state.clock.now()
        record = SandboxRecord(
            uid=new_uid(),
            id=options.id,
            owner=options.owner,
            pool=pool.name,
            options=complete(options, pool.spec, settings, info),
            status=Status.CREATED,
            name=environment_name(options.owner, options.chat or options.id),
            isolation=info.isolation,
            created_at=now,
            last_active=now,
            address=pool.address,
        )
        entry = Entry(record, self._state.clock)
        table.add(entry)
        return entry, pool

    async def _build(self, entry: Entry, progress: Progress | None) -> None:
        async with entry.lock:
            try:
                with naming(entry):
                    await self._make(entry, progress)
            except BaseException:
                await self._state.tasks.finish(self._undo(entry), f"undoing the creation of {entry.record.id}")
                raise
        entry.activity.touch()

    async def _make(self, entry: Entry, progress: Progress | None) -> None:
        await in_thread(self._state.store.prepare, entry.record)
        runtime_id = await self._operations.make(entry, progress)
        if entry.record.options.start:
            changes = await self._operations.run(entry, runtime_id)
        else:
            changes = {"status": Status.CREATED}
        # The runtime id in the record says that the creation is complete.
        await self._state.save(entry, runtime_id=runtime_id, **changes)

    async def _undo(self, entry: Entry) -> None:
        entry.update(doomed=True, status=Status.REMOVING)
        try:
            await self._remover.destroy(entry)
        except (SandboxError, OSError):
            pass  # noted in the record and tried again by the reaper; the caller hears why the creation failed


def check_workspace(workspace: str, data_dir: Path) -> None:
    """Raises `InvalidOptionError` unless ``workspace`` is empty or a directory apart from the manager's own files."""
    if not workspace:
        return
    path = Path(workspace)
    if not path.is_absolute() or not path.is_dir():
        raise InvalidOptionError(
            f"workspace={workspace!r} is not valid", hint="accepted: the absolute path of a directory"
        )
    real, own = path.resolve(), data_dir.resolve()
    if real.is_relative_to(own) or own.is_relative_to(real):
        raise InvalidOptionError(
            f"workspace={workspace!r} holds the manager's own files", hint="choose another directory"
        )


def _caller_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _removed_meanwhile(entry: Entry, pool: Pool) -> SandboxError:
    if pool.closing:
        return PoolNotFoundError("the pool was removed while the sandbox was being created", pool=pool.name)
    return NotFoundError("it was removed while it was being created", sandbox=entry.record.id, hint="create it again")
