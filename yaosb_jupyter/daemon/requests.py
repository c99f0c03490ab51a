"""What a client can ask of the daemon: one record a request, with the same fields at both ends.

A request is the OPEN of a stream: its name as ``op``, its fields beside it. What flows before the CLOSE is told at
each; where nothing is told, nothing does. The CLOSE holds ``{"value": ...}``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from yaosb_jupyter.options import CreateOptions, ExecOptions, TerminalSize
from yaosb_jupyter.types import ListFilter, PoolSpec
from yaosb_jupyter.wire.codec import from_json, to_json


@dataclass(frozen=True, kw_only=True)
class Request:
    """``repeatable``: asking twice is like asking once, so it is asked again when the daemon was lost meanwhile."""

    op: ClassVar[str]
    repeatable: ClassVar[bool]

    def __init_subclass__(cls, *, op: str, repeatable: bool = False, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls.op = op
        cls.repeatable = repeatable

    def arguments(self) -> dict[str, Any]:
        fields: dict[str, Any] = to_json(self)
        return fields


@dataclass(frozen=True, kw_only=True)
class Create(Request, op="create"):
    """Messages ``{"progress": PullProgress}``."""

    options: CreateOptions


@dataclass(frozen=True, kw_only=True)
class GetOrCreate(Request, op="get-or-create", repeatable=True):
    """Messages ``{"progress": PullProgress}``."""

    options: CreateOptions


@dataclass(frozen=True, kw_only=True)
class Get(Request, op="get", repeatable=True):
    ref: str


@dataclass(frozen=True, kw_only=True)
class List(Request, op="list", repeatable=True):
    """Messages ``{"items": [SandboxInfo, ...]}``."""

    filter: ListFilter


@dataclass(frozen=True, kw_only=True)
class Start(Request, op="start", repeatable=True):
    ref: str


@dataclass(frozen=True, kw_only=True)
class Stop(Request, op="stop", repeatable=True):
    ref: str
    timeout: float | None = None


@dataclass(frozen=True, kw_only=True)
class Remove(Request, op="remove"):
    ref: str


@dataclass(frozen=True, kw_only=True)
class Exec(Request, op="exec"):
    """A conversation as `yaosb_jupyter.link.resume` holds it; the value is an `ExitStatus`.

    ``options.id`` is the client's choice. ``again``: another daemon was asked for it before, and its answer was lost.
    """

    ref: str
    options: ExecOptions
    again: bool = False


@dataclass(frozen=True, kw_only=True)
class Attach(Request, op="exec.attach"):
    """The same, from an offset on; without ``since`` its end only."""

    ref: str
    command_id: str
    since: int | None
    holds: bool = False
    """The client reads the pipe of its stdout itself."""


@dataclass(frozen=True, kw_only=True)
class TakeStdout(Request, op="exec.take_stdout"):
    """The pipe of its stdout: a message with a token and an offset, or False where it cannot be had."""

    ref: str
    command_id: str


@dataclass(frozen=True, kw_only=True)
class Control(Request, op="exec.control", repeatable=True):
    """Not a message of the command's own stream, where it would wait behind stdin that nobody reads.

    With ``grace``, returns when the command has ended, if it is in the foreground. ``token``: what comes with it again
    is not done again.
    """

    ref: str
    command_id: str
    token: str
    signal: int | None = None
    grace: float | None = None
    size: TerminalSize | None = None


@dataclass(frozen=True, kw_only=True)
class Spawn(Request, op="exec.spawn", repeatable=True):
    """``options.id`` is the client's choice."""

    ref: str
    options: ExecOptions


@dataclass(frozen=True, kw_only=True)
class Commands(Request, op="exec.list", repeatable=True):
    """Messages ``{"items": [CommandInfo, ...]}``."""

    ref: str


@dataclass(frozen=True, kw_only=True)
class Dial(Request, op="dial"):
    """``{"connected": true}``, then data both ways, each way to its EOF; the value is None."""

    ref: str
    port: int


@dataclass(frozen=True, kw_only=True)
class Proxy(Request, op="proxy", repeatable=True):
    """The value is a URL of the daemon's own listener."""

    ref: str
    port: int
    path: str


@dataclass(frozen=True, kw_only=True)
class Vnc(Request, op="vnc", repeatable=True):
    """The value is a `Desktop`, with URLs of the daemon's own listener."""

    ref: str


@dataclass(frozen=True, kw_only=True)
class ProxyHealthz(Request, op="proxy.healthz", repeatable=True):
    pass


@dataclass(frozen=True, kw_only=True)
class KillProcess(Request, op="kill-process"):
    ref: str
    pattern: str


@dataclass(frozen=True, kw_only=True)
class Heartbeat(Request, op="heartbeat", repeatable=True):
    ref: str
    active: bool
    process_count: int


@dataclass(frozen=True, kw_only=True)
class Stats(Request, op="stats", repeatable=True):
    ref: str


@dataclass(frozen=True, kw_only=True)
class Logs(Request, op="logs"):
    """Output as data."""

    ref: str
    follow: bool = False
    tail: int | None = None
    since: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Cleanup(Request, op="cleanup", repeatable=True):
    pass


@dataclass(frozen=True, kw_only=True)
class Pools(Request, op="pools", repeatable=True):
    """Messages ``{"items": [PoolInfo, ...]}``."""


@dataclass(frozen=True, kw_only=True)
class AddPool(Request, op="add-pool"):
    spec: PoolSpec


@dataclass(frozen=True, kw_only=True)
class RemovePool(Request, op="remove-pool"):
    name: str
    force: bool = False


@dataclass(frozen=True, kw_only=True)
class ImageExists(Request, op="image-exists", repeatable=True):
    image: str
    pool: str


@dataclass(frozen=True, kw_only=True)
class PullImage(Request, op="pull-image", repeatable=True):
    """Messages ``{"progress": PullProgress}``."""

    image: str
    pool: str


@dataclass(frozen=True, kw_only=True)
class FilesRead(Request, op="files.read"):
    """The content as data."""

    ref: str
    path: str
    offset: int = 0
    size: int | None = None


@dataclass(frozen=True, kw_only=True)
class FilesWrite(Request, op="files.write"):
    """The client sends the content as data, then EOF."""

    ref: str
    path: str
    mode: int | None = None


@dataclass(frozen=True, kw_only=True)
class FilesOpen(Request, op="files.open"):
    """A loan (see `yaosb_jupyter.daemon.lending`); where the file cannot be lent, the value is None at once."""

    ref: str
    path: str


@dataclass(frozen=True, kw_only=True)
class FilesStage(Request, op="files.stage"):
    """The same of a new file, which is committed when it is given back; the value is its `FileInfo` then."""

    ref: str
    path: str
    mode: int | None = None


@dataclass(frozen=True, kw_only=True)
class FilesManifest(Request, op="files.manifest"):
    """What `FilesPack` would give, as data, without the content of files."""

    ref: str
    source: str
    checksum: bool


@dataclass(frozen=True, kw_only=True)
class FilesPack(Request, op="files.pack"):
    """A file or a tree as records, as data: the daemon never opens a path outside of a workspace for a client.

    With ``manifest`` the client first sends one as data, then EOF; the files in it are left out.
    """

    ref: str
    source: str
    manifest: bool


@dataclass(frozen=True, kw_only=True)
class FilesUnpack(Request, op="files.unpack"):
    """The client sends records as data, then EOF."""

    ref: str
    target: str


@dataclass(frozen=True, kw_only=True)
class FilesStat(Request, op="files.stat", repeatable=True):
    ref: str
    path: str
    follow: bool = False


@dataclass(frozen=True, kw_only=True)
class FilesList(Request, op="files.list", repeatable=True):
    """Messages ``{"items": [FileInfo, ...]}``."""

    ref: str
    path: str


@dataclass(frozen=True, kw_only=True)
class FilesMkdir(Request, op="files.mkdir", repeatable=True):
    ref: str
    path: str


@dataclass(frozen=True, kw_only=True)
class FilesRemove(Request, op="files.remove"):
    ref: str
    path: str
    recursive: bool = False


@dataclass(frozen=True, kw_only=True)
class FilesRename(Request, op="files.rename"):
    ref: str
    source: str
    target: str


@dataclass(frozen=True, kw_only=True)
class DaemonStatus(Request, op="daemon.status", repeatable=True):
    """The value is a `yaosb_jupyter.daemon.control.Status`."""


@dataclass(frozen=True, kw_only=True)
class DaemonStop(Request, op="daemon.stop"):
    """Stops the daemon; sandboxes go on. With ``when_idle`` not before the last stream of others has ended.

    With ``when_unused`` only where there are neither other clients nor sandboxes. The value tells whether it stops now.
    """

    when_idle: bool = False
    when_unused: bool = False


def parse(kind: type[Request], message: dict[str, Any]) -> Request:
    """Raises `ProtocolError`, `InvalidOptionError`."""
    return from_json(kind, {name: value for name, value in message.items() if name != "op"})
