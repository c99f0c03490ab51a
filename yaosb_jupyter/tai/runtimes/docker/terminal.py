"""Commands at terminals by engine exec: for images without python3, and other users than the container's.

The engine makes the terminal and tells the exit code when asked. What a daemon that the command leaves behind still
writes is waited for.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from signal import SIGHUP

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.guest.terminal import END_OF_FILE, NAME
from yaosb_jupyter.options import ExecOptions, TerminalSize
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.exec import DockerExecStream, end_unseen
from yaosb_jupyter.tai.runtimes.docker.processes import Processes, Tree
from yaosb_jupyter.tai.runtimes.docker.scripts import MARKER

_NO_DETACHING = "ctrl-@,ctrl-@,ctrl-@,ctrl-@"
"""Something that nobody types; the engine's own choice, ctrl-p ctrl-q, would be swallowed."""
_PREPARE = """
stty rows "$1" cols "$2"
nonce=$3; shift 3
command -v "$1" >/dev/null 2>&1 || { printf %s "$nonce"; exit 127; }
exec "$@"
"""
"""An engine gives the terminal its size only after the start, when the command may have asked for it."""
_MAX_WORDS = 4096


async def start_terminal(
    engine: Engine, processes: Processes, runtime_id: str, options: ExecOptions, *, cwd: str, env: dict[str, str]
) -> DockerTerminalStream:
    """Starts a command. Cancelled meanwhile, it is ended."""
    size = options.tty or TerminalSize()
    tree = Tree(
        runtime_id=runtime_id,
        command=options.argv[0],
        user=options.user,
        marker=secrets.token_hex(16),
        nonce=secrets.token_hex(16),
    )
    made = await engine.call(
        lambda client: client.exec_create(
            runtime_id,
            ["sh", "-c", _PREPARE, "sh", str(size.rows), str(size.columns), tree.nonce, *options.argv],
            stdin=True,
            tty=True,
            user=options.user,
            environment={"TERM": NAME, **env, MARKER: tree.marker},
            workdir=cwd or None,
            detach_keys=_NO_DETACHING,
        ),
        sandbox=runtime_id,
    )
    try:
        target = engine.target("exec", made["Id"], "start")
        connection = await engine.upgrade(target, {"Detach": False, "Tty": True}, sandbox=runtime_id)
    except asyncio.CancelledError:
        engine.in_background(end_unseen(processes, tree))
        raise
    return DockerTerminalStream(engine, processes, tree, made["Id"], connection, options)


class DockerTerminalStream(DockerExecStream):
    """See `DockerExecStream`; all output is stdout."""

    ending_signal = SIGHUP  # shells at a terminal do not listen to SIGTERM

    _words = b""

    async def send(self, data: bytes) -> None:
        async with self._sending:
            await self._send_frame(data)

    async def close_stdin(self) -> None:
        await self.send(END_OF_FILE)

    async def resize(self, size: TerminalSize) -> None:
        with suppress(SandboxError):  # it has ended, which its reader is told
            await self._engine.call(
                lambda client: client.exec_resize(self._exec_id, height=size.rows, width=size.columns)
            )

    async def _advance(self) -> None:
        data = await self._connection.read()
        if data:
            if len(self._words) < _MAX_WORDS:
                self._words += data[:_MAX_WORDS]
            self._keep(ExecChannel.STDOUT, data)
        else:
            await self._learn_end()

    def _words_of_engine(self) -> bytes:
        """What it says of a command that it could not start stands where its output would."""
        self._pending.clear()
        return self._words

    async def _end_without_report(self, code: int) -> None:
        if code == 127 and self._words == self._tree.nonce.encode():
            self._pending.clear()
            await self._fail(self._not_found(code))
        else:
            await self._end_with(code)
