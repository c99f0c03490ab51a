"""The records that cross the package's borders. All frozen, none does I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

from yaosb_jupyter.checks import (
    check_mapping,
    check_text,
    is_name,
)
from yaosb_jupyter.choices import ExecChannel, FileChange, Lifecycle, Network, Status, VncStatus
from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.options import CreateOptions, PortMapping

WORKDIR = "/workspace"


@dataclass(frozen=True, kw_only=True)
class ExitStatus:
    """How a command ended.

    ``exit_code`` 128 + n where signal n killed it; ``signal`` n, or None (guessed from the code where the engine's own
    exec runs the command, which cannot tell the two apart); ``duration`` seconds; ``timed_out`` it was
    killed at its timeout. ``peak_memory`` bytes of the largest of its processes and ``cpu_time`` seconds of them all
    that it waited for, 0 where the runtime does not tell. ``out_of_memory`` it was killed, and while it ran the kernel
    killed a process of the sandbox for want of memory; False where the sandbox cannot see that (only Docker's can).
    """

    exit_code: int
    signal: int | None = None
    duration: float = 0.0
    timed_out: bool = False
    peak_memory: int = 0
    cpu_time: float = 0.0
    out_of_memory: bool = False


@dataclass(frozen=True, kw_only=True)
class CommandInfo:
    """A command that a sandbox knows: one that runs, or ended in the background not long ago.

    ``written`` bytes of output so far, of which those from offset ``kept`` on can still be read; ``exit`` None while
    it runs. What the sandbox itself tells, ``pid`` inside and ``started_at`` by its clock.
    """

    id: str
    argv: tuple[str, ...]
    pid: int
    background: bool
    started_at: datetime
    written: int
    kept: int
    exit: ExitStatus | None = None


Text = TypeVar("Text", str, bytes)


@dataclass(frozen=True, kw_only=True)
class ExecResult(Generic[Text]):
    """A command's end and output. ``truncated``: output beyond the cap was dropped; what is kept is its end.

    The rest is as in `ExitStatus`.
    """

    exit_code: int
    stdout: Text
    stderr: Text
    signal: int | None = None
    duration: float = 0.0
    truncated: bool = False
    peak_memory: int = 0
    cpu_time: float = 0.0
    out_of_memory: bool = False


@dataclass(frozen=True, kw_only=True)
class Output(Generic[Text]):
    """An event of a stream: a piece of output, in order of arrival."""

    channel: ExecChannel
    data: Text


@dataclass(frozen=True, kw_only=True)
class Exit:
    """The last event of every stream."""

    status: ExitStatus


@dataclass(frozen=True, kw_only=True)
class ServerEvent:
    """An event of an event stream; ``id`` the last that the server gave, ``""`` for none yet."""

    data: str
    event: str = "message"
    id: str = ""


@dataclass(frozen=True, kw_only=True)
class ProxyHealth:
    """The proxy as it answers: its ``address`` on this machine, and how many ports have links there."""

    address: str
    links: int


@dataclass(frozen=True, kw_only=True)
class Desktop:
    """A sandbox's desktop: whether it can be looked at, and where.

    ``url`` is a WebSocket that speaks VNC, for noVNC and the like; ``page`` shows it in a browser. Both are secrets, as
    those of `AsyncSandbox.proxy`; empty unless it is starting or ready.
    """

    status: VncStatus
    url: str = ""
    page: str = ""


@dataclass(frozen=True, kw_only=True)
class FileInfo:
    """One file. ``path`` is relative to the workspace, ``size`` bytes, ``mtime`` seconds since 1970."""

    name: str
    path: str
    size: int
    mode: int
    mtime: float
    is_dir: bool
    link_target: str | None = None


@dataclass(frozen=True, kw_only=True)
class FileEvent:
    """A change in a watched directory; ``path`` is relative to the workspace."""

    change: FileChange
    path: str


@dataclass(frozen=True, kw_only=True)
class CopyProgress:
    """How far a copy of files is: bytes of all bytes, and the file it is at, from the top of what is copied.

    ``total`` is that of one source. ``files`` are whole already.
    """

    path: str
    done: int
    total: int
    files: int = 0


@dataclass(frozen=True, kw_only=True)
class Copied:
    """What was copied, and to where: ``files`` and bytes that were sent, files that were there ``unchanged``.

    ``skipped``: links and special files, which are left out (the first of them).
    """

    target: str
    files: int
    size: int
    unchanged: int = 0
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Isolation:
    """What a sandbox is kept from, as probed on this host: short facts for people, one a field."""

    means: str
    files: str
    metadata: str
    unix_sockets: str
    internet: str
    host: str
    lan: str
    other_sandboxes: str
    processes: str
    memory: str
    cpu: str
    pids: str


@dataclass(frozen=True, kw_only=True)
class SandboxInfo:
    """A sandbox as its callers see it. Times are aware datetimes in UTC, timeouts seconds (0 never).

    ``link``: how commands get in: ``socket`` or ``relay`` to our guest, ``engine`` by the engine's own exec; empty
    until the first start. ``vnc_status``: whether the desktop that ``vnc`` asked for can be looked at; None without
    one, and in lists.
    """

    uid: str
    id: str
    runtime_id: str
    pool: str
    owner: str
    chat: str
    image: str
    status: Status
    status_reason: str
    reachable: bool
    lifecycle: Lifecycle
    labels: Mapping[str, str]
    ip: str
    created_at: datetime
    last_active: datetime
    process_count: int
    idle_timeout: float
    max_lifetime: float
    expires_at: datetime | None
    vnc: bool
    ports: tuple[PortMapping, ...]
    link: str
    isolation: Isolation | None
    vnc_status: VncStatus | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SandboxRecord:
    """The durable facts of one sandbox: what was asked for with every default applied, and what became of it.

    ``options`` holds no None timeouts or limits. ``isolation`` is what its runtime told at its creation, ``address``
    the pool's, should the pool leave the configuration. ``runtime_id`` is empty until the creation is complete.
    ``doomed``: its removal was asked for, and is tried until the engine agrees. ``lost`` names the fields that could
    not be restored.
    """

    uid: str
    id: str
    owner: str
    pool: str
    options: CreateOptions
    status: Status
    status_reason: str = ""
    runtime_id: str = ""
    name: str = ""
    ip: str = ""
    ports: tuple[PortMapping, ...] = ()
    link: str = ""
    isolation: Isolation | None = None
    created_at: datetime
    last_active: datetime
    process_count: int = 0
    address: str = ""
    doomed: bool = False
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SandboxStats:
    """Use of resources now: ``cpu_percent`` of one core; bytes; ``pids`` processes and threads."""

    cpu_percent: float
    memory: int
    memory_limit: int
    pids: int
    network_rx: int = 0
    network_tx: int = 0


@dataclass(frozen=True, kw_only=True)
class ListFilter:
    """Which sandboxes to list; empty fields match all."""

    owner: str = ""
    status: Status | None = None
    lifecycle: Lifecycle | None = None
    pool: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_text("owner", self.owner)
        check_text("pool", self.pool)
        check_mapping("labels", self.labels)


@dataclass(frozen=True, kw_only=True)
class PoolLimits:
    """How many sandboxes a pool holds, stopped ones too; 0 means no limit."""

    max_total: int = 0
    max_per_user: int = 0


@dataclass(frozen=True, kw_only=True)
class PoolTimeouts:
    """Defaults of a pool's sandboxes in seconds; None takes the settings', 0 means never."""

    idle_timeout: float | None = None
    max_lifetime: float | None = None
    stop_timeout: float | None = None


@dataclass(frozen=True, kw_only=True)
class PoolSpec:
    """A pool: an address, with limits and defaults for its sandboxes.

    ``options`` are the runtime's own (certificates, the opt-in for plain embedded); None and empty fields take the
    settings' defaults.
    """

    name: str
    address: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    limits: PoolLimits = PoolLimits()
    timeouts: PoolTimeouts = PoolTimeouts()
    image: str = ""
    memory: int | None = None
    cpus: float | None = None
    pids: int | None = None
    network: Network | None = None
    workdir: str = WORKDIR
    user: str = ""

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise InvalidOptionError(f"pool name {self.name!r} is not valid", hint="accepted: letters, digits, . _ -")


@dataclass(frozen=True, kw_only=True)
class PoolInfo:
    """A pool as its callers see it; ``error`` says why it is not connected."""

    name: str
    address: str
    runtime: str
    is_local: bool
    connected: bool
    error: str
    running: int
    total: int
    limits: PoolLimits
    isolation: Isolation | None


@dataclass(frozen=True, kw_only=True)
class PullProgress:
    """One step of an image pull; ``current`` and ``total`` bytes, 0 where the engine does not say."""

    layer: str
    status: str
    current: int = 0
    total: int = 0


@dataclass(frozen=True, kw_only=True)
class LogChunk:
    """Output of a sandbox's main process."""

    channel: ExecChannel
    data: bytes
