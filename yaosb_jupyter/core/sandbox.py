"""`AsyncSandbox`: one sandbox, as programs use it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self, Unpack, cast, overload
from weakref import WeakSet

from yaosb_jupyter.checks import check_number, check_text
from yaosb_jupyter.core.commands.background import AsyncCommand
from yaosb_jupyter.core.commands.bulk import BulkStream
from yaosb_jupyter.core.commands.command import CommandStream
from yaosb_jupyter.core.commands.execution import (
    CommandFields,
    CommandLine,
    ExecFields,
    Execution,
    OnOutput,
    exec_options,
    max_output_of,
)
from yaosb_jupyter.core.files.purepath import PureSandboxPath, workspace_path
from yaosb_jupyter.core.files.workspace import Files
from yaosb_jupyter.core.service import Service
from yaosb_jupyter.options import MAX_PIDS, ExecOptions, TerminalSizeLike
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.connect.attach import AttachFields, Protocol, attach
from yaosb_jupyter.tai.connect.base import AsyncAttachment
from yaosb_jupyter.tai.runtimes.base import ExecStream
from yaosb_jupyter.tai.volumes.limits import MAX_FILES, MAX_SIZE, CopyLimits
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
from yaosb_jupyter.units import DurationLike, SizeLike, parse_duration

SHELL = ("sh", "-c", 'exec "$(command -v bash || command -v sh)"')
"""The shell of a terminal: bash, where there is one."""


class AsyncSandbox:
    """A handle on a sandbox; made by `AsyncManager`.

    `close` (or leaving ``async with``) lets go of it and ends the streams begun here; `remove` destroys it. Every call
    raises `NotFoundError` once it is removed, `RuntimeUnavailableError` while its host cannot be reached.
    """

    def __init__(self, service: Service, info: SandboxInfo) -> None:
        self._service = service
        self._info = info
        self._streams: set[CommandStream[Any]] = set()
        self._attached: WeakSet[AsyncAttachment[Any]] = WeakSet()
        self.files = Files(service, info.uid, info.id)

    @property
    def uid(self) -> str:
        return self._info.uid

    @property
    def id(self) -> str:
        return self._info.id

    @property
    def owner(self) -> str:
        return self._info.owner

    @property
    def last_info(self) -> SandboxInfo:
        """What was known when the handle was made or last asked (`info`, `start`, `stop`)."""
        return self._info

    def __repr__(self) -> str:
        return f"<AsyncSandbox {self.id!r} of {self.owner!r}, {self._info.status.value}, uid {self.uid}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @overload
    async def exec(
        self,
        command: CommandLine,
        *,
        encoding: str = "utf-8",
        on_stdout: OnOutput[str] | None = None,
        on_stderr: OnOutput[str] | None = None,
        **fields: Unpack[ExecFields],
    ) -> ExecResult[str]: ...

    @overload
    async def exec(
        self,
        command: CommandLine,
        *,
        encoding: None,
        on_stdout: OnOutput[bytes] | None = None,
        on_stderr: OnOutput[bytes] | None = None,
        **fields: Unpack[ExecFields],
    ) -> ExecResult[bytes]: ...

    async def exec(
        self,
        command: CommandLine,
        *,
        encoding: str | None = "utf-8",
        on_stdout: OnOutput[Any] | None = None,
        on_stderr: OnOutput[Any] | None = None,
        **fields: Unpack[ExecFields],
    ) -> ExecResult[Any]:
        """Runs a command to its end. A string is for ``sh -c``; ``encoding=None`` gives bytes.

        ``on_stdout`` and ``on_stderr`` (plain or async) get the output as it arrives; what they raise ends the command
        and reaches the caller, as does cancelling this call. See `ExecFields` for the rest. Raises
        `CommandNotFoundError`, `ExecTimeoutError` (with what was written), `ExecFailedError` with ``check``,
        `OutputLimitExceededError`, `NotRunningError`, `SandboxLostError` where the sandbox ends meanwhile.
        """
        stdin = fields.get("stdin")
        execution: Execution[Any] = Execution(
            sandbox=self.id,
            options=exec_options(command, stdin=stdin is not None, fields=cast(CommandFields, fields)),
            encoding=encoding,
            errors=fields.get("errors", "replace"),
            check=fields.get("check", False),
            stdin=stdin,
            max_output=max_output_of(fields.get("max_output")),
            truncate=fields.get("truncate", True),
            on_stdout=on_stdout,
            on_stderr=on_stderr,
        )
        return await execution.run(self._begin)

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
        options = exec_options(command, stdin=stdin, fields=fields)

        async def begin() -> ExecStream:
            inner = await self._begin(options)
            self._streams.add(stream)
            return inner

        stream: CommandStream[Any] = CommandStream(
            begin, encoding=encoding, errors=errors, on_close=self._streams.discard
        )
        return stream

    async def spawn(
        self, command: CommandLine, *, stdin: bool = False, **fields: Unpack[CommandFields]
    ) -> AsyncCommand:
        """Starts a command in the background, where it goes on without this handle, its process and the manager.

        Its output is read by `AsyncCommand.attach`, or not: of it the last MiB is kept. ``stdin=True`` for one that
        shall be sent input then. Raises `CommandNotFoundError`, `NotRunningError`, `NotAvailableError` where the
        sandbox's runtime cannot.
        """
        info = await self._service.spawn(self.uid, exec_options(command, stdin=stdin, fields=fields))
        return AsyncCommand(self._service, self.uid, info.id)

    async def list_commands(self) -> Sequence[CommandInfo]:
        """The commands that run, and the last 32 that ended in the background."""
        return await self._service.commands(self.uid)

    def command(self, command_id: str) -> AsyncCommand:
        """A handle on one of them."""
        return AsyncCommand(self._service, self.uid, command_id)

    def terminal(
        self, command: CommandLine = SHELL, *, size: TerminalSizeLike = (80, 24), **fields: Unpack[CommandFields]
    ) -> CommandStream[str]:
        """A command at a terminal, by default a shell: what is typed is sent, and all that it writes is stdout.

        ``size`` in columns and rows; see `CommandStream.resize`. Beginning it raises `NotAvailableError` where the
        sandbox's runtime has no terminals.
        """
        return self.stream(command, stdin=True, **cast(CommandFields, {**fields, "tty": size}))

    async def copy_to(
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
        place = workspace_path(target, self.uid)
        return await self._service.volume(self.uid).push(Path(source), place, progress, checksum=checksum)

    async def copy_from(
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
        limits = CopyLimits.of(max_size, max_files, sandbox=self.id)
        place = workspace_path(source, self.uid)
        volume = self._service.volume(self.uid)
        return await volume.pull(place, Path(target), progress, checksum=checksum, limits=limits)

    async def start(self) -> SandboxInfo:
        """No-op when running; makes the environment anew, with its files, where it vanished."""
        self._info = await self._service.start(self.uid)
        return self._info

    async def stop(self, timeout: DurationLike | None = None) -> SandboxInfo:
        """Ends its processes, keeps its files. ``timeout`` seconds between SIGTERM and SIGKILL. No-op when stopped."""
        grace = None if timeout is None else parse_duration(timeout, "timeout")
        self._info = await self._service.stop(self.uid, grace)
        return self._info

    async def remove(self) -> None:
        """Destroys it with its files."""
        await self._service.remove(self.uid)

    async def info(self) -> SandboxInfo:
        """What it is now. Not use: no timeout begins anew."""
        self._info = await self._service.get(self.uid)
        return self._info

    async def stats(self) -> SandboxStats:
        """What it uses now. Raises `NotRunningError`."""
        return await self._service.stats(self.uid)

    async def logs(
        self, *, follow: bool = False, tail: int | None = None, since: datetime | None = None
    ) -> AsyncIterator[LogChunk]:
        """Output of its main process: the last ``tail`` lines, and with ``follow`` what comes."""
        if tail is not None:
            check_number("tail", tail, 0, 2**31)
        async with aclosing(cast(Any, self._service.logs(self.uid, follow=follow, tail=tail, since=since))) as chunks:
            async for chunk in chunks:
                yield chunk

    async def dial(self, port: int) -> ByteStream:
        """Connects to a TCP port inside, published or not, for ``async with``; close what you dial.

        Raises `PortUnavailableError` where nothing listens there, `NotRunningError`, `NotAvailableError` where its
        pool cannot reach ports. Being open is not use of the sandbox, bytes that move are.
        """
        check_number("port", port, 1, 65535)
        return await self._service.dial(self.uid, port)

    async def vnc(self) -> Desktop:
        """Its desktop: whether it is there and ready, and the URLs that show it on this machine.

        A sandbox has one if its image has: create it with ``vnc=True``. To ask is no use of the sandbox, to look at the
        desktop is.
        """
        return await self._service.vnc(self.uid)

    async def proxy(self, port: int, path: str = "/") -> str:
        """A URL that works on this machine, for a browser too, of what listens (or will) at a TCP port inside.

        Published or not, in every network mode; HTTP, event streams and WebSockets pass. Pages are shown with an origin
        of their own, without cookies and storage. The URL is a secret for one port: whoever has it gets in, until 12
        hours after it was last asked for, or until the sandbox is stopped or removed. ``path`` may hold a query. Raises
        `NotRunningError`, `InvalidOptionError`.
        """
        check_number("port", port, 1, 65535)
        check_text("path", path)
        return await self._service.proxy(self.uid, port, path)

    @overload
    async def attach(
        self, port: int, protocol: Literal["ws"] = "ws", **fields: Unpack[AttachFields]
    ) -> AsyncAttachment[str | bytes]: ...

    @overload
    async def attach(
        self, port: int, protocol: Literal["sse"], **fields: Unpack[AttachFields]
    ) -> AsyncAttachment[ServerEvent]: ...

    @overload
    async def attach(
        self, port: int, protocol: Literal["tcp"], **fields: Unpack[AttachFields]
    ) -> AsyncAttachment[bytes]: ...

    async def attach(
        self, port: int, protocol: Protocol = "ws", **fields: Unpack[AttachFields]
    ) -> AsyncAttachment[Any]:
        """Connects to a server inside in its own protocol, published or not: see `AsyncAttachment`, `AttachFields`.

        ``"ws"`` a WebSocket: messages, text or bytes. ``"sse"`` an event stream: `ServerEvent`; lost, it is connected
        again from its last event on, unless the server answers that there is no more. ``"tcp"``: bytes. Raises
        `PortUnavailableError` where nothing listens or answers in time, `ProtocolError` where it speaks another
        protocol, with its status and the beginning of what it says, `NotRunningError`, `InvalidOptionError`.
        """
        attached = await attach(lambda: self._service.dial(self.uid, port), self.id, port, protocol, fields)
        self._attached.add(attached)
        return attached

    async def kill_process(self, pattern: str) -> Sequence[int]:
        """Ends the processes whose full command line matches the regular expression; returns their pids inside."""
        check_text("pattern", pattern)
        return await self._service.kill_process(self.uid, pattern)

    async def heartbeat(self, *, active: bool, process_count: int = 0) -> None:
        """Tells the manager whether something is going on inside; only ``active`` postpones the idle timeout."""
        check_number("process_count", process_count, 0, MAX_PIDS)
        await self._service.heartbeat(self.uid, active=active, process_count=process_count)

    async def close(self) -> None:
        """Lets go: streams begun here are ended, the sandbox stays."""
        for stream in list(self._streams):
            await stream.aclose()
        for attached in list(self._attached):
            await attached.close()

    async def _begin(self, options: ExecOptions) -> ExecStream:
        return BulkStream(await self._service.exec_stream(self.uid, options))
