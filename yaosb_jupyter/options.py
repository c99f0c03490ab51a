"""What callers ask for: how to create a sandbox and run a command. Frozen; what is bad is named by its field."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self, TypedDict, Unpack, cast

from yaosb_jupyter.checks import (
    check_env,
    check_flag,
    check_id,
    check_label,
    check_mapping,
    check_number,
    check_text,
    fits_system,
    is_address,
    is_name,
    several,
)
from yaosb_jupyter.choices import Lifecycle, Network
from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.units import DurationLike, SizeLike, parse_duration, parse_size

MIN_MEMORY = 16 * 2**20
"""Bytes of the smallest sandbox: less does not hold our guest."""
_MAX_MEMORY = 2**50
MAX_COMMAND = 1_000_000
"""Bytes of a command and its environment as JSON: what can be passed on everywhere."""
MAX_PIDS = 2**22  # Linux's own


@dataclass(frozen=True, kw_only=True)
class PortMapping:
    """One port of the sandbox published on its host; ``host_port`` 0 lets the engine choose.

    ``host_ip``: an address of the host, ``0.0.0.0`` for all of them. A name is not accepted: engines take what they do
    not understand for all addresses.
    """

    container_port: int
    host_port: int = 0
    host_ip: str = "127.0.0.1"
    protocol: str = "tcp"

    def __post_init__(self) -> None:
        check_number("ports: container_port", self.container_port, 1, 65535)
        check_number("ports: host_port", self.host_port, 0, 65535)
        if self.protocol not in ("tcp", "udp"):
            raise InvalidOptionError(f"ports: protocol {self.protocol!r} is not valid", hint="accepted: tcp, udp")
        if not is_address(self.host_ip):
            raise InvalidOptionError(
                f"ports: host address {self.host_ip!r} is not valid",
                hint="accepted: an IP address, 127.0.0.1 for this host alone, 0.0.0.0 for everybody",
            )

    @classmethod
    def parse(cls, value: PortLike) -> Self:
        """``8080``, ``"8080"``, ``"9000:8080"``, ``"127.0.0.1:9000:8080/udp"``, ``"[::1]:9000:8080"`` (Docker's order:
        host first). An empty host port lets the engine choose."""
        if isinstance(value, PortMapping):
            return cast(Self, value)
        text, _, protocol = str(value).partition("/")
        try:
            *host, container = text.rsplit(":", 2)
            host_ip = host[0] if len(host) == 2 else "127.0.0.1"
            host_ip = host_ip[1:-1] if host_ip.startswith("[") and host_ip.endswith("]") else host_ip
            host_port = int(host[-1] or 0) if host else 0
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
            if not fits_system(part):
                raise InvalidOptionError(f"the command holds {part[:200]!r}, which no bytes stand for")
        for name in ("cwd", "user"):
            check_text(name, getattr(self, name))
        check_flag("stdin", self.stdin)
        _check_pairs("env", self.env, check_env)
        self._check_size()
        if self.timeout is not None:
            parse_duration(self.timeout, "timeout")

    def _check_size(self) -> None:
        texts = [*self.argv, *self.env, *self.env.values()]
        if 12 * sum(map(len, texts)) < MAX_COMMAND:  # no character takes more
            return
        size = len(json.dumps(texts))
        if size > MAX_COMMAND:
            raise InvalidOptionError(
                f"the command and its environment are too large: {size} bytes, {MAX_COMMAND} are accepted",
                hint="pass what is long by stdin or in a file",
            )
