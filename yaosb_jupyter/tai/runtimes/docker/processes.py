"""Finding, signalling and ending processes inside a container, by our scripts run there."""

from __future__ import annotations

import asyncio
import re
import secrets
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.errors import (
    NotFoundError,
    NotRunningError,
    RuntimeUnavailableError,
    UnavailableError,
)
from yaosb_jupyter.tai.runtimes.docker.demux import Demultiplexer
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.scripts import (
    END_PROCESSES,
    KEEPALIVE_NAME,
    LIST_PROCESSES,
    MARKER,
    WRAPPER_NAME,
)
from yaosb_jupyter.tai.runtimes.docker.spec import GUEST_COMMAND
from yaosb_jupyter.tai.runtimes.docker.throwaway import run_throwaway

_SECONDS = 30.0
_TICKS_A_SECOND = 20
_HELPER_NAME = "yaosb-helper"
_BESIDE_CAPABILITIES = ["DAC_READ_SEARCH", "KILL", "SYS_PTRACE"]


@dataclass(frozen=True, kw_only=True)
class Tree:
    """A command's processes: where they run, as whom, and how they are told from others."""

    runtime_id: str
    command: str
    user: str
    marker: str
    nonce: str


@dataclass(frozen=True, kw_only=True)
class Process:
    """One process inside; ``start`` in ticks since boot tells it from a later one of the same id."""

    pid: int
    parent: int
    start: int
    command: str


async def run_script(
    engine: Engine, runtime_id: str, script: str, arguments: Sequence[str], *, user: str = ""
) -> tuple[int, bytes, bytes]:
    """Runs a script of ours by an engine exec; exit code, stdout, stderr. Raises `UnavailableError` after 30 s."""
    argv = ["sh", "-c", script, _HELPER_NAME, *arguments]
    made = await engine.call(lambda client: client.exec_create(runtime_id, argv, user=user), sandbox=runtime_id)
    exec_id = made["Id"]
    connection = await engine.upgrade(
        engine.target("exec", exec_id, "start"), {"Detach": False, "Tty": False}, sandbox=runtime_id
    )
    output: dict[ExecChannel, bytearray] = {channel: bytearray() for channel in ExecChannel}
    demultiplexer = Demultiplexer()
    try:
        async with asyncio.timeout(_SECONDS):
            while data := await connection.read():
                for channel, piece in demultiplexer.feed(data):
                    output[channel] += piece
    except TimeoutError as error:
        raise UnavailableError("a helper inside did not end in time", sandbox=runtime_id) from error
    finally:
        await connection.aclose()
    state = await engine.call(lambda client: client.exec_inspect(exec_id), sandbox=runtime_id)
    code = state["ExitCode"]
    return 1 if code is None else int(code), bytes(output[ExecChannel.STDOUT]), bytes(output[ExecChannel.STDERR])


class Processes:
    """Ends processes inside containers of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def end_tree(self, tree: Tree, signum: int, grace: float) -> int:
        """Signals a command's processes, after ``grace`` seconds kills those left; how many there were at first."""
        arguments = ["tree", f"{MARKER}={tree.marker}", tree.nonce, str(int(signum)), _ticks(grace)]
        return await self._end(tree.runtime_id, arguments, tree.user)

    async def signal_tree(self, tree: Tree, signum: int) -> int:
        arguments = ["once", f"{MARKER}={tree.marker}", tree.nonce, str(int(signum))]
        return await self._end(tree.runtime_id, arguments, tree.user)

    async def end_matching(self, runtime_id: str, pattern: str, grace: float) -> Sequence[int]:
        """Ends the processes whose command line matches; never pid 1, the keep-alive or our own."""
        expression = re.compile(pattern)
        nonce = secrets.token_hex(16)
        _, listing, _ = await run_script(self._engine, runtime_id, LIST_PROCESSES, [nonce])
        chosen = [process for process in theirs(parse_processes(listing, nonce)) if expression.search(process.command)]
        if chosen:
            wanted = [f"{process.pid}:{process.start}" for process in chosen]
            await self._end(runtime_id, ["pids", str(int(signal.SIGTERM)), _ticks(grace), *wanted], "")
        return [process.pid for process in chosen]

    async def _end(self, runtime_id: str, arguments: Sequence[str], user: str) -> int:
        try:
            code, output, _ = await run_script(self._engine, runtime_id, END_PROCESSES, arguments, user=user)
        except NotRunningError:
            if not await self.is_paused(runtime_id):
                return 0
            code, output = 1, b""
        except NotFoundError:
            return 0
        except RuntimeUnavailableError:
            raise
        except UnavailableError:
            code, output = 1, b""
        found = _count(output)
        return found if code == 0 else max(found, await self._end_beside(runtime_id, arguments))

    async def _end_beside(self, runtime_id: str, arguments: Sequence[str]) -> int:
        """The same from a container that shares the process ids only: where the sandbox is full, or users differ."""
        try:
            state = await self._engine.call(lambda client: client.inspect_container(runtime_id), sandbox=runtime_id)
            if not state["State"]["Running"]:
                return 0
            host_config = {"PidMode": f"container:{runtime_id}", "CapAdd": _BESIDE_CAPABILITIES}
            argv = ["sh", "-c", END_PROCESSES, _HELPER_NAME, *arguments]
            _, output = await run_throwaway(self._engine, state["Image"], argv, host_config=host_config)
        except (NotFoundError, NotRunningError):
            return 0
        return _count(output)

    async def is_paused(self, runtime_id: str) -> bool:
        """Whether the engine says so."""
        try:
            found: Mapping[str, bool] = (
                await self._engine.call(lambda client: client.inspect_container(runtime_id), sandbox=runtime_id)
            )["State"]
        except (NotFoundError, RuntimeUnavailableError):
            return False
        return found["Paused"]


def parse_processes(listing: bytes, nonce: str) -> Sequence[Process]:
    """What the listing script printed."""
    processes = []
    for part in listing.split(nonce.encode() + b" ")[1:]:
        stat, _, command = part.partition(b"\n")
        fields = stat.rpartition(b") ")[2].split()
        if len(fields) < 20 or fields[0] == b"Z":
            continue
        text = command.rstrip(b"\0\n").replace(b"\0", b" ").decode(errors="replace")
        processes.append(
            Process(pid=int(stat.split(b" ", 1)[0]), parent=int(fields[1]), start=int(fields[19]), command=text)
        )
    return processes


def theirs(processes: Sequence[Process]) -> Sequence[Process]:
    """Without pid 1, the keep-alive and its sleep, the guest, its relay, and our scripts."""
    keepers = {
        process.pid for process in processes if process.pid != 1 and process.command.endswith(f" {KEEPALIVE_NAME}")
    }
    return [
        process
        for process in processes
        if process.pid != 1
        and process.pid not in keepers
        and process.parent not in keepers
        and not _is_script(process.command)
        and not process.command.startswith(" ".join(GUEST_COMMAND))
    ]


def _is_script(command: str) -> bool:
    return command.startswith("sh -c ") and (f"\n {WRAPPER_NAME} " in command or f"\n {_HELPER_NAME} " in command)


def _count(output: bytes) -> int:
    """What the script said first; nothing where it could not run."""
    first = output.split(b"\n", 1)[0]
    return int(first) if first.isdigit() else 0


def _ticks(seconds: float) -> str:
    return str(max(0, round(seconds * _TICKS_A_SECOND)))
