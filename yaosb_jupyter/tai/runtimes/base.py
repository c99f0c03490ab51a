"""The contract of every runtime.

A runtime creates and runs environments on one host. It holds no state that a restart would lose: what it must know of
an environment it finds on the host again. All methods are coroutines that never block the loop, raise only errors of
`yaosb_jupyter.errors` (the engine's own chained), and may be cancelled at any await, after which the environment is
as before the call or as after it. ``tests/contract`` runs over every runtime.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from yaosb_jupyter.errors import NotAvailableError
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.types import (
    ExecChannel,
    ExecOptions,
    ExitStatus,
    Isolation,
    LogChunk,
    Network,
    PortMapping,
    PullProgress,
    SandboxStats,
    Status,
)


class Capability(StrEnum):
    """What not every runtime can do. A runtime tells what it does on this host, as probed."""

    MEMORY_LIMIT = "memory-limit"
    """``memory`` holds for all processes of the environment together."""
    CPU_LIMIT = "cpu-limit"
    PIDS_LIMIT = "pids-limit"
    IMAGES = "images"
    """``image`` matters: it must exist, and can be pulled."""
    USERS = "users"
    """``user`` may be any user of the image."""
    PORTS = "ports"
    """``ports`` are published on the host."""
    OWN_PIDS = "own-pids"
    """Commands see the environment's processes only."""
    DIAL = "dial"
    """Any port inside can be dialled, whatever the network."""
    SERVICES = "services"
    """Services of the manager can be reached from inside, whatever the network."""


@dataclass(frozen=True, kw_only=True)
class RuntimeInfo:
    """What a runtime found when it was opened. ``shared_files``: a directory of this host can be a workspace."""

    kind: str
    version: str
    is_local: bool
    shared_files: bool
    isolation: Isolation
    default_network: Network
    default_image: str
    capabilities: frozenset[Capability] = frozenset()


@dataclass(frozen=True, kw_only=True)
class EnvironmentSpec:
    """One environment to create, every default applied.

    ``labels`` the reserved ones included; ``directory`` the sandbox's own directory on this host
    (``{data}/sandboxes/{uid}``, holds ``run/``); ``workspace`` the host's directory for the files, ``""`` where the
    files are not shared and the runtime makes a volume; ``cmd`` empty for our own main process, ``("image",)`` for the
    image's; ``env`` goes to every command, not into the engine's environment.
    """

    uid: str
    name: str
    image: str
    labels: Mapping[str, str]
    directory: Path
    workspace: Path
    cmd: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/workspace"
    user: str = ""
    memory: int = 0
    cpus: float = 0.0
    pids: int = 0
    gpus: str = ""
    ports: tuple[PortMapping, ...] = ()
    network: Network = Network.NONE
    stop_timeout: float = 10.0


@dataclass(frozen=True, kw_only=True)
class EnvironmentState:
    """An environment as the engine tells it. ``reason``: why it ended, where it did not end by our own call."""

    runtime_id: str
    name: str
    status: Status
    labels: Mapping[str, str]
    image: str = ""
    reason: str = ""
    exit_code: int | None = None
    ip: str = ""
    ports: tuple[PortMapping, ...] = ()
    created_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class EnvironmentEvent:
    """Something happened to an environment outside (or because) of our calls; ``status`` is what it is since."""

    runtime_id: str
    status: Status
    reason: str = ""


class ExecStream(ABC):
    """One running command. Not for concurrent use by several readers.

    Output is pulled: a command whose output nobody takes blocks once the buffers between are full. The exit status
    follows the last byte. Leaving without reading to the end: call `cancel`, or `aclose` which cancels too.
    """

    @abstractmethod
    async def receive(self) -> tuple[ExecChannel, bytes] | None:
        """The next output in order of arrival, or None when the command has ended (or never began) and all was given.

        Raises `SandboxLostError`, as `wait` does, where the environment was removed or vanished meanwhile. What a
        process that outlives the command writes later is not waited for.
        """

    @abstractmethod
    async def send(self, data: bytes) -> None:
        """Writes to the command's stdin; waits while it does not read. After its end, data is dropped."""

    @abstractmethod
    async def close_stdin(self) -> None:
        """End of file for the command's stdin. Idempotent."""

    @abstractmethod
    async def wait(self) -> ExitStatus:
        """The exit status; output not yet received is read and dropped. Idempotent.

        A command that could not be started raises `CommandNotFoundError`; one killed at its timeout is told by
        `ExitStatus.timed_out`.
        """

    @abstractmethod
    async def signal(self, signum: int) -> None:
        """Sends a signal to every process of the command's tree. Nothing happens after its end."""

    @abstractmethod
    async def cancel(self, grace: float = 2.0) -> None:
        """Ends the whole tree: SIGTERM, after ``grace`` seconds SIGKILL; returns when it is gone. Idempotent."""

    async def aclose(self) -> None:
        """Lets go of the stream, ending the command if it runs."""
        await self.cancel()


class Runtime(ABC):
    """Creates and runs environments on one host.

    ``kind`` names it in ``PoolInfo.runtime``; `open` is called once, before all else.
    """

    kind: ClassVar[str]

    @abstractmethod
    async def open(self) -> RuntimeInfo:
        """Connects and probes. Raises `RuntimeUnavailableError` with the cause and the way out."""

    @abstractmethod
    async def create(self, spec: EnvironmentSpec) -> str:
        """Makes the environment without starting it; returns its runtime id. On failure nothing is left behind.

        Raises `ImageNotFoundError`, `AlreadyExistsError` (name taken), `InvalidOptionError` (what this runtime cannot
        give, named).
        """

    @abstractmethod
    async def start(self, runtime_id: str) -> None:
        """Runs it; returns when commands can be run. No-op when running.

        Raises `NotFoundError`, and `CommandNotFoundError` where its main process cannot be started.
        """

    @abstractmethod
    async def stop(self, runtime_id: str, timeout: float) -> None:
        """Ends all its processes: SIGTERM to the main one, after ``timeout`` seconds SIGKILL to all. Files stay.

        No-op when not running. Raises `NotFoundError`.
        """

    @abstractmethod
    async def remove(self, runtime_id: str) -> None:
        """Kills and removes it with everything the runtime made for it (not the workspace directory).

        No-op when it is gone already.
        """

    @abstractmethod
    async def exec_stream(self, runtime_id: str, options: ExecOptions) -> ExecStream:
        """Starts a command. ``options.timeout`` is enforced inside where possible, by the host in any case.

        Raises `NotFoundError`, `NotRunningError`. A command that cannot be started is told by `ExecStream.wait`.
        """

    async def dial(self, runtime_id: str, port: int) -> ByteStream:  # noqa: ARG002 - for those that can
        """A TCP connection to a port of the environment's loopback, published or not.

        Raises `NotFoundError`, `NotRunningError`, `PortUnavailableError` where nothing listens there,
        `NotAvailableError` where ports cannot be reached (see `Capability.DIAL`).
        """
        raise NotAvailableError(
            f"ports cannot be dialled on {self.kind}", sandbox=runtime_id, hint="publish them: ports=[...]"
        )

    @abstractmethod
    async def kill_processes(self, runtime_id: str, pattern: str, grace: float = 2.0) -> Sequence[int]:
        """Ends the processes whose full command line matches; returns their pids inside. Never pid 1 or the guest."""

    @abstractmethod
    async def inspect(self, runtime_id: str) -> EnvironmentState:
        """Raises `NotFoundError`."""

    @abstractmethod
    async def list(self, labels: Mapping[str, str]) -> Sequence[EnvironmentState]:
        """All environments, running or not, that carry these labels."""

    @abstractmethod
    async def stats(self, runtime_id: str) -> SandboxStats:
        """Raises `NotFoundError`, `NotRunningError`."""

    @abstractmethod
    def logs(
        self, runtime_id: str, *, follow: bool = False, tail: int | None = None, since: datetime | None = None
    ) -> AsyncIterator[LogChunk]:
        """Output of the main process. ``tail`` lines from the end. Raises `NotFoundError`."""

    @abstractmethod
    def events(self) -> AsyncIterator[EnvironmentEvent]:
        """What happens from here on; ends with `RuntimeUnavailableError` when the engine goes away."""

    @abstractmethod
    def volume(self, spec: EnvironmentSpec, runtime_id: str) -> Volume:
        """The files of an environment's workspace."""

    @abstractmethod
    async def remove_workspace(self, spec: EnvironmentSpec) -> None:
        """Removes the workspace's files, whoever owns them. No-op when gone."""

    @abstractmethod
    async def image_exists(self, image: str) -> bool: ...

    @abstractmethod
    async def pull_image(self, image: str, progress: Callable[[PullProgress], None] | None = None) -> None:
        """Raises `ImageNotFoundError` (no such image), `InvalidOptionError` (bad name), `RuntimeUnavailableError`
        (the registry does not answer)."""

    @abstractmethod
    async def close(self) -> None:
        """Lets go of the host; environments go on. Idempotent."""
