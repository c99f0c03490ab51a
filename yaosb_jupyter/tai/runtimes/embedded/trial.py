"""A trial sandbox: whether a means works here, and what a sandbox can reach under it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from yaosb_jupyter.choices import ExecChannel, Network
from yaosb_jupyter.errors import RuntimeUnavailableError, SandboxError
from yaosb_jupyter.guest.processes import read_process
from yaosb_jupyter.link.guest import new_key
from yaosb_jupyter.options import ExecOptions
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec
from yaosb_jupyter.tai.runtimes.embedded.environment import Environment
from yaosb_jupyter.tai.runtimes.embedded.handles import ProcessHandle
from yaosb_jupyter.tai.runtimes.embedded.host import EmbeddedHost
from yaosb_jupyter.tai.runtimes.embedded.record import EnvironmentRecord, RecordStore
from yaosb_jupyter.tai.runtimes.embedded.workspace import make_workspace
from yaosb_jupyter.tai.threads import in_thread

TIMEOUT = 20.0
_PREFIX = "try"
_PROGRAM = Path(__file__).with_name("trial_program.py")


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What the program in the trial could do to the host; see `trial_program`."""

    reads_files: bool
    writes_files: bool
    sees_metadata: bool
    changes_metadata: bool
    path_sockets: bool
    abstract_sockets: bool
    host_ports: bool
    network: bool
    sees_processes: bool
    signals_processes: bool


async def try_host(host: EmbeddedHost, network: Network, uids: tuple[int, int]) -> Reach:
    """Runs one sandbox to its end. Raises `SandboxError` where this means does not work here."""
    uid = f"{_PREFIX}{secrets.token_hex(8)}"
    directory = host.files.directory / uid
    spec = EnvironmentSpec(
        uid=uid,
        name=uid,
        image="",
        labels={},
        directory=directory,
        workspace=directory / "workspace",
        network=network,
    )
    program = await in_thread(_PROGRAM.read_text)
    try:
        with ExitStack() as stack:
            given = await in_thread(lambda: stack.enter_context(_bait(directory)))
            user = await in_thread(make_workspace, spec, uids)
            record = EnvironmentRecord(spec=spec, created_at=datetime.now(UTC), key=new_key(), user=user)
            store = RecordStore(directory)
            await in_thread(store.save, record)
            environment = Environment(record, replace(host, store=store))
            try:
                await environment.start()
                async with asyncio.timeout(TIMEOUT):
                    return await _told(environment, host.view.python, program, given)
            finally:
                await environment.remove()
    except (OSError, TimeoutError) as error:
        raise RuntimeUnavailableError(f"the trial failed: {error!r}") from error
    finally:
        await in_thread(lambda: shutil.rmtree(directory, ignore_errors=True))


def sweep_trials(host: EmbeddedHost) -> None:
    """Ends trials whose daemon was killed before their end. Blocks."""
    for directory in host.files.directory.glob(f"{_PREFIX}*"):
        with contextlib.suppress(FileNotFoundError):  # another has just ended its own
            if time.time() - directory.stat().st_mtime < 2 * TIMEOUT:
                continue
        for record in RecordStore(directory).load_all():
            if record.process is not None and (guest := ProcessHandle.find(record.process)) is not None:
                guest.signal(signal.SIGKILL)
                guest.close()
        shutil.rmtree(directory, ignore_errors=True)


async def _told(environment: Environment, python: str, program: str, given: dict[str, Any]) -> Reach:
    argv = (python, "-I", "-S", "-c", program, msgspec.json.encode(given).decode())
    stream = await environment.link().commands.exec(ExecOptions(argv=argv), cwd="", env={}, kill=environment.kill)
    output = dict.fromkeys(ExecChannel, b"")
    while (piece := await stream.receive()) is not None:
        output[piece[0]] += piece[1]
    try:
        await stream.wait()
        return msgspec.json.decode(output[ExecChannel.STDOUT], type=Reach)
    except (SandboxError, msgspec.DecodeError) as error:
        complaint = output[ExecChannel.STDERR].decode(errors="replace").strip() or str(error)
        raise RuntimeUnavailableError(f"the trial failed: {complaint[-500:]}") from error


@contextmanager
def _bait(directory: Path) -> Iterator[dict[str, Any]]:
    """Things of the host that anybody may use: a file, a directory, sockets, this process."""
    bait = directory / "bait"
    bait.mkdir(parents=True)
    for made, mode in ((directory, 0o755), (bait, 0o777)):
        made.chmod(mode)
    file = bait / "file"
    file.write_text("x")
    file.chmod(0o644)
    process = read_process(os.getpid())
    abstract = f"yaosb-{secrets.token_hex(8)}"
    with ExitStack() as stack:
        path_socket = stack.enter_context(socket.socket(socket.AF_UNIX))
        path_socket.bind(str(bait / "s"))
        (bait / "s").chmod(0o666)
        abstract_socket = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract_socket.bind(f"\0{abstract}")
        tcp_socket = stack.enter_context(socket.socket(socket.AF_INET))
        tcp_socket.bind(("127.0.0.1", 0))
        for listener in (path_socket, abstract_socket, tcp_socket):
            listener.listen()
        yield {
            "file": str(file),
            "directory": str(bait),
            "socket": str(bait / "s"),
            "abstract": abstract,
            "port": tcp_socket.getsockname()[1],
            "pid": os.getpid(),
            "started": process.started if process is not None else 0,
        }
