"""The contract between the public faces and whoever does the work.

`yaosb_jupyter.core.controller.Controller` does it in this process, `yaosb_jupyter.daemon.client.RemoteService` passes
it to the daemon. `AsyncManager` and `AsyncSandbox` are written once, over this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from yaosb_jupyter.options import CreateOptions, ExecOptions, TerminalSize
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.runtimes.base import ExecStream
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.types import (
    CommandInfo,
    Desktop,
    ListFilter,
    LogChunk,
    PoolInfo,
    PoolSpec,
    ProxyHealth,
    PullProgress,
    SandboxInfo,
    SandboxStats,
)

Progress = Callable[[PullProgress], None]


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who is asking, as the credential tells. Only an admin may name another owner."""

    owner: str
    admin: bool = False


class Service(ABC):
    """All that can be done with sandboxes, for one caller.

    ``ref`` is an id or a uid; another owner's sandbox is a `NotFoundError`. Calls that use a sandbox count as
    activity; `get`, `list`, `stats`, `logs`, `pools` do not.
    """

    @abstractmethod
    async def create(self, options: CreateOptions, progress: Progress | None = None) -> SandboxInfo:
        """A new sandbox, running unless ``options.start`` is False.

        Raises `AlreadyExistsError`, `LimitExceededError`, `PoolNotFoundError`, `ImageNotFoundError`,
        `RuntimeUnavailableError`, `InvalidOptionError`, `PermissionDeniedError`.
        """

    @abstractmethod
    async def get_or_create(self, options: CreateOptions, progress: Progress | None = None) -> SandboxInfo:
        """The sandbox of that id, else of that (owner, chat), started if it was stopped, else a new one.

        Options that differ from the existing sandbox's are named in ``SandboxInfo.warnings``.
        """

    @abstractmethod
    async def get(self, ref: str) -> SandboxInfo: ...

    @abstractmethod
    async def list(self, filter: ListFilter) -> Sequence[SandboxInfo]:
        """The caller's sandboxes by time of creation; an admin's list holds all owners' unless the filter names one."""

    @abstractmethod
    async def start(self, ref: str) -> SandboxInfo: ...

    @abstractmethod
    async def stop(self, ref: str, timeout: float | None = None) -> SandboxInfo: ...

    @abstractmethod
    async def remove(self, ref: str) -> None: ...

    @abstractmethod
    async def exec_stream(self, ref: str, options: ExecOptions) -> ExecStream: ...

    @abstractmethod
    async def dial(self, ref: str, port: int) -> ByteStream:
        """A TCP connection to a port inside, published or not; use while bytes move.

        Raises `PortUnavailableError` where nothing listens there, `NotAvailableError` where its pool cannot.
        """

    @abstractmethod
    async def proxy(self, ref: str, port: int, path: str = "/") -> str:
        """A URL of this machine's loopback for what listens, or will, at a port inside; use while bytes move.

        Whoever has it gets in: it holds a secret, and leads nowhere 12 hours after it was last asked for, or when the
        sandbox is stopped or removed. Asked for again it is the same.
        """

    @abstractmethod
    async def vnc(self, ref: str) -> Desktop:
        """Whether its desktop can be looked at, and where; the URLs are as those of `proxy`."""

    @abstractmethod
    async def proxy_healthz(self) -> ProxyHealth:
        """That the proxy answers, and where. Raises `UnavailableError`."""

    @abstractmethod
    async def spawn(self, ref: str, options: ExecOptions) -> CommandInfo:
        """Starts a command in the background; it goes on without its caller, and is no use while it runs.

        Raises `NotAvailableError` where the runtime cannot (see `Capability.BACKGROUND`), `InvalidOptionError` in a
        one-shot sandbox.
        """

    @abstractmethod
    async def commands(self, ref: str) -> Sequence[CommandInfo]:
        """The commands that run, and the last that ended in the background. Looking is no use."""

    @abstractmethod
    async def attach(self, ref: str, command_id: str, since: int | None = 0, *, holds: bool = False) -> ExecStream:
        """See `Runtime.attach`; unknown commands are a `NotFoundError`."""

    @abstractmethod
    async def control(
        self,
        ref: str,
        command_id: str,
        *,
        signal: int | None = None,
        grace: float | None = None,
        size: TerminalSize | None = None,
    ) -> None:
        """See `Runtime.control`."""

    @abstractmethod
    async def kill_process(self, ref: str, pattern: str) -> Sequence[int]: ...

    @abstractmethod
    async def heartbeat(self, ref: str, *, active: bool, process_count: int) -> None: ...

    @abstractmethod
    async def stats(self, ref: str) -> SandboxStats: ...

    @abstractmethod
    def logs(
        self, ref: str, *, follow: bool = False, tail: int | None = None, since: datetime | None = None
    ) -> AsyncIterator[LogChunk]: ...

    @abstractmethod
    def volume(self, ref: str) -> Volume:
        """The sandbox's files; each call on it is checked and counts as use."""

    @abstractmethod
    async def cleanup(self) -> Sequence[str]:
        """Applies the lifecycles now; returns the ids of what was stopped or removed."""

    @abstractmethod
    async def pools(self) -> Sequence[PoolInfo]: ...

    @abstractmethod
    async def add_pool(self, spec: PoolSpec) -> PoolInfo: ...

    @abstractmethod
    async def remove_pool(self, name: str, *, force: bool = False) -> None: ...

    @abstractmethod
    async def image_exists(self, image: str, pool: str = "") -> bool: ...

    @abstractmethod
    async def pull_image(self, image: str, pool: str = "", progress: Progress | None = None) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...
