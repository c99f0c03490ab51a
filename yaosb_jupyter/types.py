"""The records, enums and options that cross the package's borders. All frozen, none does I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, Self, TypedDict, TypeVar, Unpack, cast

from yaosb_jupyter.checks import (
    check_env,
    check_flag,
    check_id,
    check_label,
    check_mapping,
    check_number,
    check_text,
    is_name,
    several,
)
from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.units import DurationLike, SizeLike, parse_duration, parse_size

WORKDIR = "/workspace"

MIN_MEMORY = 16 * 2**20
"""Bytes of the smallest sandbox: less does not hold our guest."""
_MAX_MEMORY = 2**50
MAX_PIDS = 2**22  # Linux's own

_E = TypeVar("_E", bound="_Choice")


class _Choice(StrEnum):
    @classmethod
    def of(cls: type[_E], value: str, field_name: str) -> _E:
        """The member called ``value`` (case, ``-`` and ``_`` do not matter), or `InvalidOptionError`."""
        wanted = re.sub(r"[-_ ]", "", str(value)).lower()
        for member in cls:
            if member.value.replace("-", "") == wanted:
                return member
        raise InvalidOptionError(
            f"{field_name}={value!r} is not valid", hint="accepted: " + ", ".join(member.value for member in cls)
        )


class Lifecycle(_Choice):
    """When a sandbox ends by itself."""

    ONE_SHOT = "one-shot"
    SESSION = "session"
    LONG_RUNNING = "long-running"
    PERSISTENT = "persistent"


class Status(_Choice):
    """What a sandbox is doing, as far as its engine has told."""

    CREATED = "created"
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    STOPPED = "stopped"
    REMOVING = "removing"
    REMOVED = "removed"
    FAILED = "failed"


class Network(_Choice):
    """What a sandbox can reach: nothing, what its host reaches, or a list of names through a proxy."""

    NONE = "none"
    BRIDGE = "bridge"
    ALLOWLIST = "allowlist"


class ExecChannel(_Choice):
    """Which of a command's two outputs a chunk came from."""

    STDOUT = "stdout"
    STDERR = "stderr"


@dataclass(frozen=True, kw_only=True)
class PortMapping:
    """One port of the sandbox published on its host; ``host_port`` 0 lets the engine choose."""

    container_port: int
    host_port: int = 0
    host_ip: str = "127.0.0.1"
    protocol: str = "tcp"

    def __post_init__(self) -> None:
        if not 1 <= self.container_port <= 65535:
            raise InvalidOptionError(f"ports: container port {self.container_port} is not valid", hint="1 to 65535")
        if not 0 <= self.host_port <= 65535:
            raise InvalidOptionError(f"ports: host port {self.host_port} is not valid", hint="accepted: 0-65535")
        if self.protocol not in ("tcp", "udp"):
            raise InvalidOptionError(f"ports: protocol {self.protocol!r} is not valid", hint="accepted: tcp, udp")

    @classmethod
    def parse(cls, value: PortLike) -> Self:
        """``8080``, ``"8080"``, ``"9000:8080"``, ``"127.0.0.1:9000:8080/udp"`` (Docker's order: host first)."""
        if isinstance(value, PortMapping):
            return cast(Self, value)
        text, _, protocol = str(value).partition("/")
        try:
            *host, container = text.rsplit(":", 2)
            host_ip = host[0] if len(host) == 2 else "127.0.0.1"
            host_port = int(host[-1]) if host else 0
            return cls(container_port=int(container), host_port=host_port, host_ip=host_ip, protocol=protocol or "tcp")
        except ValueError as error:
            if isinstance(error, InvalidOptionError):
                raise
            raise InvalidOptionError(
                f"ports: {value!r} is not valid", hint="accepted: PORT, HOST:PORT or IP:HOST:PORT, with /udp"
            ) from None


PortLike = int | str | PortMapping


class CreateFields(TypedDict, total=False):
    """The keyword arguments of ``create``, in the forms people write; see `CreateOptions`."""

    owner: str
    chat: str
    labels: Mapping[str, str]
    pool: str
    image: str
    cmd: str | Sequence[str]
    workdir: str
    user: str
    env: Mapping[str, str]
    memory: SizeLike
    cpus: float
    pids: int
    gpus: str
    ports: Sequence[PortLike]
    network: str
    vnc: bool
    lifecycle: str
    idle_timeout: DurationLike
    max_lifetime: DurationLike
    stop_timeout: DurationLike
    workspace: str
    start: bool


@dataclass(frozen=True, kw_only=True)
class CreateOptions:
    """What to create. Empty and None fields take the pool's, then the settings' defaults.

    ``id`` unique per owner; ``memory`` bytes; ``cpus`` cores; ``pids`` processes and threads; ``gpus`` ``"all"`` or a
    number; timeouts in seconds, 0 never; ``cmd`` the main process, ``("image",)`` keeps the image's own;
    ``workspace`` a directory of the host to use in place of one of the sandbox's own (never removed with it);
    ``start=False`` leaves the sandbox ``created``. Raises `InvalidOptionError`.
    """

    id: str = ""
    owner: str = ""
    chat: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    pool: str = ""
    image: str = ""
    cmd: tuple[str, ...] = ()
    workdir: str = ""
    user: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    memory: int | None = None
    cpus: float | None = None
    pids: int | None = None
    gpus: str = ""
    ports: tuple[PortMapping, ...] = ()
    network: Network | None = None
    vnc: bool = False
    lifecycle: Lifecycle = Lifecycle.SESSION
    idle_timeout: float | None = None
    max_lifetime: float | None = None
    stop_timeout: float | None = None
    workspace: str = ""
    start: bool = True

    def __post_init__(self) -> None:
        for name in ("id", "owner", "chat", "pool", "image", "workdir", "user", "gpus", "workspace"):
            check_text(name, getattr(self, name))
        for name in ("vnc", "start"):
            check_flag(name, getattr(self, name))
        for part in self.cmd:
            check_text("cmd", part)
        if self.id:
            check_id(self.id)
        _check_pairs("labels", self.labels, check_label)
        _check_pairs("env", self.env, check_env)
        self._check_limits()
        if self.workdir and not self.workdir.startswith("/"):
            raise InvalidOptionError(f"workdir={self.workdir!r} is not valid", hint="accepted: an absolute path")
        for name in ("idle_timeout", "max_lifetime", "stop_timeout"):
            value = getattr(self, name)
            if value is not None:
                parse_duration(value, name)
        object.__setattr__(self, "labels", dict(self.labels))
        object.__setattr__(self, "env", dict(self.env))

    def _check_limits(self) -> None:
        if self.memory is not None:
            if isinstance(self.memory, int) and self.memory < MIN_MEMORY:
                least = f'accepted: at least "{MIN_MEMORY >> 20}m"'
                raise InvalidOptionError(f"memory={self.memory} is too small", hint=least)
            check_number("memory", self.memory, MIN_MEMORY, _MAX_MEMORY)
        if self.cpus is not None:
            check_number("cpus", self.cpus, 0.01, 1024, whole=False)
        if self.pids is not None:
            check_number("pids", self.pids, 1, MAX_PIDS)

    @classmethod
    def of(cls, id: str = "", /, **given: Unpack[CreateFields]) -> Self:
        """Options from the forms people write: ``memory="2g"``, ``idle_timeout="30m"``, ``ports=[8080]``."""
        known = {item.name for item in fields(cls)}
        unknown = sorted(set(given) - known)
        if unknown:
            raise InvalidOptionError(f"unknown option {unknown[0]!r}", hint="accepted: " + ", ".join(sorted(known)))
        values: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        for name, convert in _CONVERTERS.items():
            if name in values:
                values[name] = convert(values[name])
        return cls(id=id, **values)


def _check_pairs(field_name: str, pairs: Mapping[str, str], check: Callable[[str, str], None]) -> None:
    check_mapping(field_name, pairs)
    for name, value in pairs.items():
        check(name, value)


def _cmd(value: str | Sequence[str]) -> tuple[str, ...]:
    if value == "image":
        return ("image",)
    return ("sh", "-c", value) if isinstance(value, str) else several("cmd", value)


_CONVERTERS: Mapping[str, Any] = {
    "cmd": _cmd,
    "memory": lambda value: parse_size(value, "memory"),
    "ports": lambda value: tuple(PortMapping.parse(port) for port in several("ports", value)),
    "network": lambda value: Network.of(value, "network"),
    "lifecycle": lambda value: Lifecycle.of(value, "lifecycle"),
    "idle_timeout": lambda value: parse_duration(value, "idle_timeout"),
    "max_lifetime": lambda value: parse_duration(value, "max_lifetime"),
    "stop_timeout": lambda value: parse_duration(value, "stop_timeout"),
    "gpus": str,
}


@dataclass(frozen=True, kw_only=True)
class TerminalSize:
    """Of a terminal, in characters."""

    columns: int = 80
    rows: int = 24

    def __post_init__(self) -> None:
        for name in ("columns", "rows"):
            if not 1 <= getattr(self, name) <= 65535:
                raise InvalidOptionError(f"{name}={getattr(self, name)} is not valid", hint="accepted: 1 to 65535")

    @classmethod
    def of(cls, value: TerminalSizeLike) -> TerminalSize:
        """A size, or ``(columns, rows)``."""
        if isinstance(value, TerminalSize):
            return value
        try:
            columns, rows = value
            return cls(columns=int(columns), rows=int(rows))
        except (TypeError, ValueError) as error:
            if isinstance(error, InvalidOptionError):
                raise
            raise InvalidOptionError(f"tty={value!r} is not valid", hint="accepted: (columns, rows)") from None


TerminalSizeLike = tuple[int, int] | TerminalSize


@dataclass(frozen=True, kw_only=True)
class ExecOptions:
    """One command. ``argv`` stays argv on every runtime.

    ``cwd`` absolute or relative to the working directory; ``timeout`` seconds, None or 0 for none; ``stdin`` tells
    whether the caller will send input (else the command reads end of file at once). ``tty`` gives it a terminal of that
    size: what it writes is then all stdout, and input is always taken. ``id`` names it among the sandbox's commands;
    one is made where it is empty, and asking twice with the same one does not run it twice.
    """

    argv: tuple[str, ...]
    cwd: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    timeout: float | None = None
    stdin: bool = False
    tty: TerminalSize | None = None
    id: str = ""

    def __post_init__(self) -> None:
        if self.id and not is_name(self.id):
            raise InvalidOptionError(f"id={self.id!r} is not valid", hint="accepted: letters, digits, . _ -")
        if not self.argv or not self.argv[0]:
            raise InvalidOptionError("the command is empty", hint="accepted: a shell line, or a list of arguments")
        for part in self.argv:
            if not isinstance(part, str):
                raise InvalidOptionError(f"the command holds {part!r}, which is not text", hint="accepted: text")
            if "\0" in part:
                raise InvalidOptionError("the command holds a NUL character")
        for name in ("cwd", "user"):
            check_text(name, getattr(self, name))
        check_flag("stdin", self.stdin)
        _check_pairs("env", self.env, check_env)
        if self.timeout is not None:
            parse_duration(self.timeout, "timeout")


@dataclass(frozen=True, kw_only=True)
class ExitStatus:
    """How a command ended.

    ``exit_code`` 128 + n where signal n killed it; ``signal`` n, or None (guessed from the code where the engine's own
    exec runs the command, which cannot tell the two apart); ``duration`` seconds; ``timed_out`` it was
    killed at its timeout. ``peak_memory`` bytes of the largest of its processes and ``cpu_time`` seconds of them all
    that it waited for, 0 where the runtime does not tell.
    """

    exit_code: int
    signal: int | None = None
    duration: float = 0.0
    timed_out: bool = False
    peak_memory: int = 0
    cpu_time: float = 0.0


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
class FileInfo:
    """One file. ``path`` is relative to the workspace, ``size`` bytes, ``mtime`` seconds since 1970."""

    name: str
    path: str
    size: int
    mode: int
    mtime: float
    is_dir: bool
    link_target: str | None = None


class FileChange(_Choice):
    """What happened to a file of a watched directory."""

    CREATED = "created"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, kw_only=True)
class FileEvent:
    """A change in a watched directory; ``path`` is relative to the workspace."""

    change: FileChange
    path: str


@dataclass(frozen=True, kw_only=True)
class CopyProgress:
    """How far a copy of files is: bytes of all bytes, and the file it is at, from the top of what is copied."""

    path: str
    done: int
    total: int


@dataclass(frozen=True, kw_only=True)
class Copied:
    """What was copied, and to where. ``skipped``: links and special files, which are left out (the first of them)."""

    target: str
    files: int
    size: int
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
    until the first start.
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
