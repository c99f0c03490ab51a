"""What the parts of one manager share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yaosb_jupyter.choices import Network, Status
from yaosb_jupyter.core.clock import Alarm, Clock
from yaosb_jupyter.core.entry import Entry, Table
from yaosb_jupyter.core.labels import to_labels
from yaosb_jupyter.core.pool import Pool, Pools
from yaosb_jupyter.core.records import RecordStore
from yaosb_jupyter.core.tasks import Tasks
from yaosb_jupyter.settings import Settings
from yaosb_jupyter.tai.proxy.server import Proxy
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.types import SandboxRecord

_ENDED = frozenset({Status.STOPPED, Status.FAILED, Status.REMOVING})


@dataclass(frozen=True, kw_only=True)
class State:
    """The collaborators of one manager, and the few things that take several of them at once."""

    settings: Settings
    clock: Clock
    store: RecordStore
    data_dir_id: str
    table: Table
    pools: Pools
    tasks: Tasks
    proxy: Proxy
    alarm: Alarm
    """The reaper's."""

    def pool_of(self, entry: Entry) -> Pool:
        return self.pools.of(entry.record.pool)

    def spec_of(self, entry: Entry) -> EnvironmentSpec:
        pool = self.pool_of(entry)
        return environment_spec(entry.record, self.store, self.data_dir_id, shared_files=pool.host.info.shared_files)

    async def save(self, entry: Entry, **changes: Any) -> None:
        """Changes the record, in memory at once, then on disk. The caller holds the entry's lock."""
        record = entry.update(last_active=entry.last_active(), **changes)
        if record.status in _ENDED:
            self.proxy.revoke(record.uid)
        await in_thread(self.store.save, record)


def environment_spec(
    record: SandboxRecord, store: RecordStore, data_dir_id: str, *, shared_files: bool
) -> EnvironmentSpec:
    """What the runtime is asked to make for ``record``."""
    options = record.options
    directory = store.directory(record.uid)
    own = directory / "workspace" if shared_files else Path()
    return EnvironmentSpec(
        uid=record.uid,
        name=record.name,
        image=options.image,
        labels=to_labels(record, data_dir_id),
        directory=directory,
        workspace=Path(options.workspace) if options.workspace else own,
        cmd=options.cmd,
        env=options.env,
        workdir=options.workdir,
        user=options.user,
        memory=options.memory or 0,
        cpus=options.cpus or 0.0,
        pids=options.pids or 0,
        gpus=options.gpus,
        ports=options.ports,
        network=options.network or Network.NONE,
        stop_timeout=options.stop_timeout or 0.0,
    )
