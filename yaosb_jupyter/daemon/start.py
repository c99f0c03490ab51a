"""Finding the daemon of a data directory, and starting it where none runs: once, however many ask at once."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from yaosb_jupyter.daemon.fingerprint import differences, fingerprint
from yaosb_jupyter.daemon.log import last_lines
from yaosb_jupyter.daemon.place import Place, prepare, read_facts, read_secret
from yaosb_jupyter.daemon.requests import DaemonStop
from yaosb_jupyter.errors import NotAvailableError, ProtocolError
from yaosb_jupyter.link.connection import Connection, RemoteError, dial_unix
from yaosb_jupyter.settings import load_settings
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.version import __version__, is_newer
from yaosb_jupyter.wire.errors import error_from_json

_PATIENCE = 90.0
"""Seconds for a daemon to open its pools and restore its sandboxes, after another one has let go."""

_HANGING_UP = 10.0
"""Seconds for a daemon that has agreed to end to take no more clients."""

_NOT_INHERITED = ("JPY_", "PYDEVD_")
"""What a kernel's environment says of the kernel and not of the user."""


async def reach(place: Place) -> Connection:
    """A connection to the daemon, which is started where none runs, and replaced where it is older than this client.

    Raises `NotAvailableError`, or what kept the daemon from starting; `AuthError`, `ProtocolError`.
    """
    await asyncio.to_thread(prepare, place)
    connection = await find(place)
    if connection is not None and is_newer(__version__, str((await connection.ready()).get("version", __version__))):
        connection = await _hand_over(connection, DaemonStop(when_idle=True))
    if connection is not None:
        connection = await _agree(place, connection)
    return connection or await _start(place)


async def find(place: Place) -> Connection | None:
    """A connection to the daemon that runs, or None. Raises `AuthError`, `ProtocolError`."""
    facts = await asyncio.to_thread(read_facts, place)
    if facts is None:
        return None
    hello = {"version": __version__, "pid": os.getpid()}
    try:
        hello["secret"] = await asyncio.to_thread(read_secret, place)
        return await dial_unix(Path(facts.socket), hello)
    except OSError:
        return None  # it has ended, or does so now
    except ProtocolError as error:
        error.hint = f"the daemon (process {facts.pid}) is of another version: stop it with `yaosb shutdown`"
        raise


async def _agree(place: Place, connection: Connection) -> Connection | None:
    """The connection where the daemon has our settings; where it has others, it is asked to end if it is of no use.

    Else it is used as it is, with a warning: its sandboxes are to stay reachable.
    """
    facts = await asyncio.to_thread(read_facts, place)
    if facts is None:
        return connection
    settings = await asyncio.to_thread(load_settings, data_dir=place.data_dir, runtime_dir=place.runtime_dir)
    differing = ", ".join(differences(fingerprint(settings, os.environ), facts.fingerprint))
    if not differing:
        return connection
    kept = connection if facts.stays else await _hand_over(connection, DaemonStop(when_unused=True))
    if kept is not None:
        warnings.warn(
            f"the daemon (process {facts.pid}) of {place.data_dir} runs with other settings than yours, and its own "
            f"hold: {differing}. `yaosb shutdown` ends it; the next one has yours",
            stacklevel=2,
        )
    return kept


async def _hand_over(connection: Connection, request: DaemonStop) -> Connection | None:
    """Asks a daemon to end, and gives the connection where it does not now."""
    try:
        answer = await connection.call(request.op, request.arguments())
        if not answer.get("value"):
            return connection
    except (RemoteError, ConnectionError):
        pass  # it ends already
    # It takes clients until it hangs up: who looks for a daemon before that finds the same one again.
    with suppress(TimeoutError):
        async with asyncio.timeout(_HANGING_UP):
            await connection.wait_closed()
    await connection.close("handed over")
    return None


async def _start(place: Place) -> Connection:
    async with _start_lock(place) as lock:
        connection = await find(place)
        if connection is None:
            await _spawn(place, lock)
            connection = await find(place)
    if connection is None:
        raise NotAvailableError("the daemon ended as soon as it was started", hint=await _log_hint(place))
    return connection


@asynccontextmanager
async def _start_lock(place: Place) -> AsyncIterator[int]:
    """Held by the one who starts the daemon, and by that daemon until it serves: its starter may go away meanwhile.

    Gives the descriptor. The lock ends with its holders: it is never stale.
    """
    deadline = time.monotonic() + _PATIENCE + 10.0
    descriptor = os.open(place.start_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise NotAvailableError(
                        "somebody else is starting the daemon, for too long", hint="try again"
                    ) from None
            await asyncio.sleep(0.02)  # waiting in a thread could not be cancelled
        yield descriptor
    finally:
        os.close(descriptor)


async def _spawn(place: Place, lock: int) -> None:
    """Returns when the daemon serves; raises what it failed with."""
    read_end, write_end = os.pipe()
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb", buffering=0)
    )
    try:
        try:
            await in_thread(_launch, place, write_end, lock)
        finally:
            os.close(write_end)
        async with asyncio.timeout(_PATIENCE):
            word = await reader.read()
    except TimeoutError:
        hint = await _log_hint(place)
        raise NotAvailableError(f"the daemon does not get ready within {_PATIENCE:g} s", hint=hint) from None
    finally:
        transport.close()
    await _judge(place, word)


def _launch(place: Place, ready: int, lock: int) -> None:
    argv = [sys.executable, "-m", "yaosb_jupyter.daemon", "--data-dir", str(place.data_dir)]
    argv += ["--runtime-dir", str(place.runtime_dir), "--ready-fd", str(ready), "--lock-fd", str(lock)]
    with place.log.open("ab") as output:
        subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(ready, lock),
            cwd="/",
            env=_environment(os.environ),
            start_new_session=True,
            check=False,  # the word it sends, or does not send, tells more
            timeout=_PATIENCE,
        )


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    env = {name: value for name, value in given.items() if not name.startswith(_NOT_INHERITED)}
    if env.get("YAO_CONFIG"):
        env["YAO_CONFIG"] = str(Path(env["YAO_CONFIG"]).expanduser().absolute())
    return env


async def _judge(place: Place, word: bytes) -> None:
    try:
        message: dict[str, Any] = json.loads(word)
    except ValueError:
        raise NotAvailableError("the daemon died while it was starting", hint=await _log_hint(place)) from None
    if "error" in message:
        error = error_from_json(message["error"])
        # The log is not shown: what it holds beside the error is our stack.
        error.add_note(f"the daemon could not be started; its log: {place.log}")
        raise error


async def _log_hint(place: Place) -> str:
    return f"its log, {place.log}, ends:\n{await asyncio.to_thread(last_lines, place.log)}"
