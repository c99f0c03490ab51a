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

from yaosb_jupyter.choices import ExecChannel, Network, Status
from yaosb_jupyter.errors import NotAvailableError
from yaosb_jupyter.options import ExecOptions, PortMapping, TerminalSize
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.outputpipe import OutputPipe
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.types import CommandInfo, ExitStatus, Isolation, LogChunk, PullProgress, SandboxStats


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
    BACKGROUND = "background"
    """Commands can run in the background and be taken up again, after a restart of the manager too."""
    DESKTOP = "desktop"
    """``vnc``: a desktop is shown."""
    TERMINALS = "terminals"
    """Commands can have a terminal."""


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
    """An environment as the engine tells it.

    ``reason``: why it ended, where it did not end by our own call; ``link``: how commands get in (`SandboxInfo.link`).
    """

    runtime_id: str
    name: str
    status: Status
    labels: Mapping[str, str]
    image: str = ""
    reason: str = ""
    exit_code: int | None = None
    ip: str = ""
    ports: tuple[PortMapping, ...] = ()
    link: str = ""
    created_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class EnvironmentEvent:
    """Something happened to an environment outside (or because) of our calls; ``status`` is what it is since."""

    runtime_id: str
    status: Status
    reason: str = ""


class ExecStream(ABC):
    """One running command. Not for concurrent use by several readers.

    ``background``: the command goes on when the stream is closed. ``offset`` of the next byte of output, counting both
    outputs, ``input_offset`` of the next byte to send, and ``lost`` bytes that were dropped before they could
    be received: where the runtime can take commands up again (`Capability.BACKGROUND`).

    Output is pulled: a command whose output nobody takes blocks once the buffers between are full. The exit status
    follows the last byte. Leaving without reading to the end: call `cancel`, or `aclose` which cancels too, unless the
    command runs in the background.
    """

    @property
    def background(self) -> bool:
        return False

    @property
    def offset(self) -> int:
        return 0

    @property
    def input_offset(self) -> int:
        return 0

    @property
    def lost(self) -> int:
        return 0

    @abstractmethod
    async def receive(self) -> tuple[ExecChannel, bytes] | None:
        """The next output in order of arrival, or None when the command has ended (or never began) and all was given.

        Raises `SandboxLostError`, as `wait` does, where the environment was removed or vanished meanwhile. What a
        process that outlives the command writes later is not waited for.
        """

    def receive_now(self) -> tuple[ExecChannel, bytes] | None:
        """What can be had at once, in any thread, while nobody waits for `receive`; None says nothing at all."""
        return None

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
        """Ends the whole tree: SIGTERM, after ``grace`` seconds SIGKILL; returns when it is gone. Idempotent.

        Of a command that has ended, this ends what it left behind in the background.
        """

    async def resize(self, size: TerminalSize) -> None:  # noqa: B027 - most have no terminal
        """Changes the size of the command's terminal. Nothing happens after its end, or without one."""

    async def take_stdout(self) -> OutputPipe | None:
        """The pipe that the command writes to, which the caller reads and closes; None where it is not to be had.

        `receive` gives the output up to `OutputPipe.offset` first, then stderr and the end only. What is in the pipe
        when the command has ended is the rest of its output.
        """
        return None

    def defer_acknowledgement(self) -> None:  # noqa: B027 - most keep nothing
        """Output counts as taken from here on when `acknowledge` says so: until then it can be asked for again."""

    def acknowledge(self, offset: int) -> None:  # noqa: B027
        """Output before ``offset`` is taken for good."""

    @abstractmethod
    async def aclose(self) -> None:
        """Lets go of the stream, ending the command if it still runs in the foreground; else nothing is ended."""


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

    async def isolation(self, spec: EnvironmentSpec, runtime_id: str) -> Isolation | None:  # noqa: ARG002
        """What this environment is kept from, where that is not what `RuntimeInfo.isolation` tells; else None."""
        return None

    async def dial(self, runtime_id: str, port: int) -> ByteStream:  # noqa: ARG002 - for those that can
        """A TCP connection to a port of the environment's loopback, published or not.

        Raises `NotFoundError`, `NotRunningError`, `PortUnavailableError` where nothing listens there,
        `NotAvailableError` where ports cannot be reached (see `Capability.DIAL`).
        """
        raise NotAvailableError(
            f"ports cannot be dialled on {self.kind}", sandbox=runtime_id, hint="publish them: ports=[...]"
        )

    async def spawn(self, runtime_id: str, options: ExecOptions) -> CommandInfo:
        """Starts a command in the background: of its output the last MiB is kept, and it waits for no reader.

        ``options.stdin`` is of use only to who attaches. Raises as `exec_stream`, `CommandNotFoundError`,
        `NotAvailableError` without `Capability.BACKGROUND`.
        """
        raise self._without_background(runtime_id, options)

    async def commands(self, runtime_id: str) -> Sequence[CommandInfo]:
        """The commands that run, and the last that ended in the background. Raises as `spawn`."""
        raise self._without_background(runtime_id)

    async def attach(
        self, runtime_id: str, command_id: str, since: int | None = 0, *, holds: bool = False
    ) -> ExecStream:
        """A command's output from an offset on, and its end; without ``since`` its end only.

        Of one in the foreground the latest stream is the only one; ``holds``: its reader has the pipe of `take_stdout`,
        and ``since`` does not count what came by that. Raises as `spawn`; `NotFoundError`.
        """
        raise self._without_background(runtime_id, command_id, since, holds)

    async def control(
        self,
        runtime_id: str,
        command_id: str,
        *,
        signal: int | None = None,
        grace: float | None = None,
        size: TerminalSize | None = None,
    ) -> None:
        """Sends a signal to a command's tree; with ``grace`` ends it: SIGTERM, so many seconds later SIGKILL.

        ``size`` is its terminal's from now on.

        Returns when that is begun. Nothing happens to one that has ended. Raises as `spawn`; `NotFoundError`.
        """
        raise self._without_background(runtime_id, command_id, signal, grace, size)

    def _without_background(self, runtime_id: str, *_: object) -> NotAvailableError:
        return NotAvailableError(
            f"commands cannot be taken up again on {self.kind}", sandbox=runtime_id, hint="keep their streams: stream()"
        )

    @abstractmethod
    async def kill_processes(self, runtime_id: str, pattern: str, grace: float = 2.0) -> Sequence[int]:
        """Ends the processes whose full command line matches; returns their pids inside. Never pid 1 or the guest."""

    @abstractmethod
    async def inspect(self, runtime_id: str) -> EnvironmentState:
        """Raises `NotFoundError`."""

    @abstractmethod
    async def list(self, labels: Mapping[str, str]) -> Sequence[EnvironmentState]:
        """All environments, running or not, that carry these labels. Nothing is done to them: some may be another
        pool's."""

    @abstractmethod
    async def take_up(self, state: EnvironmentState) -> None:
        """Heeds what a listing told of one of this pool's own: what runs inside may come in here, some time later."""

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

    async def vnc_port(self, runtime_id: str) -> int:  # noqa: ARG002
        """The port inside where its desktop is shown; 0 where it has none. Raises `NotFoundError`."""
        return 0

    async def default_image(self, *, desktop: bool) -> str:  # noqa: ARG002
        """The image of an environment for which none is named, with a ``desktop`` or without. Empty: the one that
        `RuntimeInfo` tells."""
        return ""

    @abstractmethod
    async def image_exists(self, image: str) -> bool: ...

    @abstractmethod
    async def pull_image(self, image: str, progress: Callable[[PullProgress], None] | None = None) -> None:
        """Raises `ImageNotFoundError` (no such image), `InvalidOptionError` (bad name), `RuntimeUnavailableError`
        (the registry does not answer)."""

    @abstractmethod
    async def close(self) -> None:
        """Lets go of the host; environments go on. Idempotent."""
