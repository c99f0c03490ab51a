"""`Sandbox`: one sandbox, as programs that do not use asyncio use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from os import PathLike
from typing import Any, Literal, Self, Unpack, cast, overload

from yaosb_jupyter.blocking.attachment import Attachment
from yaosb_jupyter.blocking.command import Command
from yaosb_jupyter.blocking.connection import Connection
from yaosb_jupyter.blocking.face import Face, feed
from yaosb_jupyter.blocking.files import Files
from yaosb_jupyter.blocking.loop import Calls, Loop
from yaosb_jupyter.blocking.stream import CommandStream
from yaosb_jupyter.core.commands.execution import CommandFields, CommandLine, ExecFields, OnOutput
from yaosb_jupyter.core.files.purepath import PureSandboxPath
from yaosb_jupyter.core.sandbox import SHELL, AsyncSandbox
from yaosb_jupyter.options import TerminalSizeLike
from yaosb_jupyter.tai.connect.attach import AttachFields, Protocol
from yaosb_jupyter.tai.volumes.limits import MAX_FILES, MAX_SIZE
from yaosb_jupyter.types import (
    CommandInfo,
    Copied,
    CopyProgress,
    Desktop,
    ExecResult,
    LogChunk,
    SandboxInfo,
    SandboxStats,
    ServerEvent,
)
from yaosb_jupyter.units import DurationLike, SizeLike

Stdin = str | bytes | Iterable[bytes] | Iterable[str]


class RunFields(CommandFields, total=False):
    """As `ExecFields`, with ``stdin`` text, bytes or an iterable of them."""

    check: bool
    stdin: Stdin | None
    errors: str
    max_output: SizeLike
    truncate: bool


class Sandbox(Face):
    """A handle on a sandbox; made by `Manager`. See `AsyncSandbox`, whose every call this waits for.

    `close` (or leaving ``with``) lets go of it and ends the streams begun here; `remove` destroys it.
    """

    def __init__(self, loop: Loop, inner: AsyncSandbox) -> None:
        super().__init__(loop)
        self._inner = inner
        self.files = Files(loop, inner.files)

    @property
    def uid(self) -> str:
        return self._inner.uid

    @property
    def id(self) -> str:
        return self._inner.id

    @property
    def owner(self) -> str:
        return self._inner.owner

    @property
    def last_info(self) -> SandboxInfo:
        """What was known when the handle was made or last asked (`info`, `start`, `stop`)."""
        return self._inner.last_info

    def __repr__(self) -> str:
        return repr(self._inner).replace("<Async", "<", 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @overload
    def exec(
        self,
        command: CommandLine,
        *,
        encoding: str = "utf-8",
        on_stdout: OnOutput[str] | None = None,
        on_stderr: OnOutput[str] | None = None,
        **fields: Unpack[RunFields],
    ) -> ExecResult[str]: ...

    @overload
    def exec(
        self,
        command: CommandLine,
        *,
        encoding: None,
        on_stdout: OnOutput[bytes] | None = None,
        on_stderr: OnOutput[bytes] | None = None,
        **fields: Unpack[RunFields],
    ) -> ExecResult[bytes]: ...

    def exec(
        self,
        command: CommandLine,
        *,
        encoding: str | None = "utf-8",
        on_stdout: OnOutput[Any] | None = None,
        on_stderr: OnOutput[Any] | None = None,
        **fields: Unpack[RunFields],
    ) -> ExecResult[Any]:
        """Runs a command to its end; see `AsyncSandbox.exec`. The callbacks are called in this thread.

        `KeyboardInterrupt` ends the command.
        """
        calls = Calls()
        given = {
            **exec_fields(fields),
            "encoding": encoding,
            "on_stdout": calls.bridge(on_stdout),
            "on_stderr": calls.bridge(on_stderr),
        }
        return self._run(lambda: self._inner.exec(command, **cast(Any, given)), calls)

    @overload
    def stream(
        self,
        command: CommandLine,
        *,
        encoding: str = "utf-8",
        errors: str = "replace",
        stdin: bool = False,
        **fields: Unpack[CommandFields],
    ) -> CommandStream[str]: ...

    @overload
    def stream(
        self,
        command: CommandLine,
        *,
        encoding: None,
        errors: str = "replace",
        stdin: bool = False,
        **fields: Unpack[CommandFields],
    ) -> CommandStream[bytes]: ...

    def stream(
        self,
        command: CommandLine,
        *,
        encoding: str | None = "utf-8",
        errors: str = "replace",
        stdin: bool = False,
        **fields: Unpack[CommandFields],
    ) -> CommandStream[Any]:
        """The same as events, while it runs: see `CommandStream`. ``stdin=True`` to send input."""
        given = {"encoding": encoding, "errors": errors, "stdin": stdin, **fields}
        return CommandStream(self._loop, self._inner.stream(command, **cast(Any, given)))

    def spawn(self, command: CommandLine, *, stdin: bool = False, **fields: Unpack[CommandFields]) -> Command:
        """Starts a command in the background, where it goes on without this handle, its process and the manager.

        Its output is read by `Command.attach`, or not: of it the last MiB is kept. ``stdin=True`` for one that shall
        be sent input then. Raises `CommandNotFoundError`, `NotRunningError`, `NotAvailableError` where the sandbox's
        runtime cannot.
        """
        inner = self._run(lambda: self._inner.spawn(command, stdin=stdin, **fields))
        return Command(self._loop, inner)

    def list_commands(self) -> Sequence[CommandInfo]:
        """The commands that run, and the last 32 that ended in the background."""
        return self._run(self._inner.list_commands)

    def command(self, command_id: str) -> Command:
        """A handle on one of them."""
        return Command(self._loop, self._inner.command(command_id))

    def terminal(
        self, command: CommandLine = SHELL, *, size: TerminalSizeLike = (80, 24), **fields: Unpack[CommandFields]
    ) -> CommandStream[str]:
        """A command at a terminal, by default a shell: what is typed is sent, and all that it writes is stdout.

        ``size`` in columns and rows; see `CommandStream.resize`. Beginning it raises `NotAvailableError` where the
        sandbox's runtime has no terminals.
        """
        return self.stream(command, stdin=True, **cast(CommandFields, {**fields, "tty": size}))

    def copy_to(
        self,
        source: str | PathLike[str],
        target: str | PureSandboxPath,
        *,
        checksum: bool = False,
        progress: Callable[[CopyProgress], None] | None = None,
    ) -> Copied:
        """Copies a file or a directory of this machine to ``target``, its name in the workspace, parents made.

        A directory that is there is filled, files are replaced; each is seen when it is whole. Files that are there
        with the same size, mode and time are not sent: what runs inside can change a file and set its time back, so
        where that matters, and where times tell nothing, ``checksum`` has contents compared in place of times. Links
        and special files below ``source`` are left out, and told. ``progress`` is called on the loop. Raises
        `PathNotFoundError`, `PathError`, `UnavailableError` where the disk is full.
        """
        return self._run(lambda: self._inner.copy_to(source, target, checksum=checksum, progress=progress))

    def copy_from(
        self,
        source: str | PureSandboxPath,
        target: str | PathLike[str],
        *,
        checksum: bool = False,
        progress: Callable[[CopyProgress], None] | None = None,
        max_size: SizeLike = MAX_SIZE,
        max_files: int = MAX_FILES,
    ) -> Copied:
        """Copies a file or a directory of the workspace to ``target``, its name on this machine; see `copy_to`.

        Whatever the sandbox holds or sends, nothing outside of ``target`` is written, and no more than ``max_size``
        bytes (16 GiB) in ``max_files`` files and directories (a million): `LimitExceededError`.
        """
        given = {"checksum": checksum, "progress": progress, "max_size": max_size, "max_files": max_files}
        return self._run(lambda: self._inner.copy_from(source, target, **cast(Any, given)))

    def start(self) -> SandboxInfo:
        """No-op when running; makes the environment anew, with its files, where it vanished."""
        return self._run(self._inner.start)

    def stop(self, timeout: DurationLike | None = None) -> SandboxInfo:
        """Ends its processes, keeps its files. ``timeout`` seconds between SIGTERM and SIGKILL. No-op when stopped."""
        return self._run(lambda: self._inner.stop(timeout))

    def remove(self) -> None:
        """Destroys it with its files."""
        self._run(self._inner.remove)

    def info(self) -> SandboxInfo:
        """What it is now. Not use: no timeout begins anew."""
        return self._run(self._inner.info)

    def stats(self) -> SandboxStats:
        """What it uses now. Raises `NotRunningError`."""
        return self._run(self._inner.stats)

    def logs(
        self, *, follow: bool = False, tail: int | None = None, since: datetime | None = None
    ) -> Iterator[LogChunk]:
        """Output of its main process: the last ``tail`` lines, and with ``follow`` what comes."""
        return self._iterate(lambda: self._inner.logs(follow=follow, tail=tail, since=since))

    def dial(self, port: int) -> Connection:
        """Connects to a TCP port inside, published or not; see `AsyncSandbox.dial`. Close what you dial."""
        return Connection(self._loop, self._run(lambda: self._inner.dial(port)))

    def vnc(self) -> Desktop:
        """Its desktop, and the URLs that show it; see `AsyncSandbox.vnc`."""
        return self._run(self._inner.vnc)

    def proxy(self, port: int, path: str = "/") -> str:
        """A URL that works on this machine, for a browser too, of a TCP port inside; see `AsyncSandbox.proxy`."""
        return self._run(lambda: self._inner.proxy(port, path))

    @overload
    def attach(
        self, port: int, protocol: Literal["ws"] = "ws", **fields: Unpack[AttachFields]
    ) -> Attachment[str | bytes]: ...

    @overload
    def attach(
        self, port: int, protocol: Literal["sse"], **fields: Unpack[AttachFields]
    ) -> Attachment[ServerEvent]: ...

    @overload
    def attach(self, port: int, protocol: Literal["tcp"], **fields: Unpack[AttachFields]) -> Attachment[bytes]: ...

    def attach(self, port: int, protocol: Protocol = "ws", **fields: Unpack[AttachFields]) -> Attachment[Any]:
        """Connects to a server inside in its own protocol: ``"ws"``, ``"sse"``, ``"tcp"``; see `AsyncSandbox`."""
        inner = self._run(lambda: self._inner.attach(port, cast(Any, protocol), **fields))
        return Attachment(self._loop, inner)

    def kill_process(self, pattern: str) -> Sequence[int]:
        """Ends the processes whose full command line matches the regular expression; returns their pids inside."""
        return self._run(lambda: self._inner.kill_process(pattern))

    def heartbeat(self, *, active: bool, process_count: int = 0) -> None:
        """Tells the manager whether something is going on inside; only ``active`` postpones the idle timeout."""
        self._run(lambda: self._inner.heartbeat(active=active, process_count=process_count))

    def close(self) -> None:
        """Lets go of the handle; the sandbox goes on. Streams begun here end."""
        self._run(self._inner.close)


def exec_fields(fields: RunFields) -> ExecFields:
    """For the asynchronous face: an iterable for stdin is taken in a thread."""
    stdin = fields.get("stdin")
    if stdin is None or isinstance(stdin, str | bytes):
        return cast(ExecFields, fields)
    return cast(ExecFields, {**fields, "stdin": feed(cast(Iterable[Any], stdin))})
