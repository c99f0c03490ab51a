"""The blocking face: in any thread, under a running loop, interruptible, and after a fork."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import os
import signal
import threading
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from blockbuster import BlockBuster

import yaosb_jupyter
from tests.daemon.conftest import Station, configure, is_alive, wait_until
from tests.manager.web import PROGRAM
from yaosb_jupyter.blocking import entry
from yaosb_jupyter.blocking import files as blocking_files
from yaosb_jupyter.blocking import loop as blocking_loop
from yaosb_jupyter.blocking import stream as blocking_stream
from yaosb_jupyter.blocking.attachment import Attachment
from yaosb_jupyter.blocking.command import Command
from yaosb_jupyter.blocking.connection import Connection
from yaosb_jupyter.blocking.entry import connect, init
from yaosb_jupyter.blocking.entry import manager as process_manager
from yaosb_jupyter.blocking.manager import Manager
from yaosb_jupyter.blocking.path import SandboxPath
from yaosb_jupyter.blocking.sandbox import Sandbox
from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.core.commands import command as async_command
from yaosb_jupyter.core.commands.background import AsyncCommand
from yaosb_jupyter.core.files import workspace as async_files
from yaosb_jupyter.core.files.path import AsyncSandboxPath
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import AlreadyExistsError, ExecFailedError, NotAvailableError, NotFoundError
from yaosb_jupyter.tai.bytestream import ByteStream
from yaosb_jupyter.tai.connect.base import AsyncAttachment
from yaosb_jupyter.types import Exit, Output


@pytest.fixture
def blocking(station: Station) -> Iterator[Manager]:
    with connect() as manager:
        yield manager


@pytest.fixture
def sandbox(blocking: Manager) -> Sandbox:
    return blocking.create("lab")


@pytest.fixture
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a process where nobody has called `init`."""
    monkeypatch.setattr(entry, "_current", None)
    yield
    if entry._current is not None:
        entry._current[0].close()


# Both faces are one

RENAMED = {"aclose": "close", "__aenter__": "__enter__", "__aexit__": "__exit__", "__aiter__": "__iter__"}


@pytest.mark.parametrize(
    ("asynchronous", "blocking_face"),
    [
        (AsyncManager, Manager),
        (AsyncSandbox, Sandbox),
        (async_files.Files, blocking_files.Files),
        (AsyncSandboxPath, SandboxPath),
        (async_command.CommandStream, blocking_stream.CommandStream),
        (AsyncCommand, Command),
        (ByteStream, Connection),
        (AsyncAttachment, Attachment),
    ],
)
def test_both_faces_have_the_same_methods_and_parameters(asynchronous: type, blocking_face: type) -> None:
    assert _surface(asynchronous) == _surface(blocking_face)


def _surface(face: type) -> dict[str, list[tuple[str, Any, Any]]]:
    found = {}
    for name, member in inspect.getmembers(face):
        renamed = RENAMED.get(name, name)
        if isinstance(member, property):
            found[renamed] = [("property", None, None)]
        elif inspect.isfunction(member) and (not name.startswith("_") or name in (*RENAMED, *RENAMED.values())):
            parameters = inspect.signature(member).parameters.values()
            found[renamed] = [(each.name, each.kind, each.default) for each in parameters]
    # How each is opened differs, and what the blocking one is made over is its own affair.
    return {name: surface for name, surface in found.items() if name not in ("open", "inner")}


# Calls


def test_a_sandbox_from_create_to_remove(blocking: Manager) -> None:
    with blocking.create("lab", labels={"a": "b"}) as sandbox:
        result = sandbox.exec("cat; echo problem >&2; exit 3", stdin="text")
        assert (result.exit_code, result.stdout, result.stderr) == (3, "text", "problem\n")
        assert sandbox.exec(["printf", "\\377"], encoding=None).stdout == b"\xff"
        sandbox.files.write("a/b", "content")
        assert sandbox.files.read_text("a/b") == "content"
        assert [info.name for info in sandbox.files.list("a")] == ["b"]
        assert sandbox.info().labels == {"a": "b"}
    assert blocking.exec("lab", "echo again").stdout == "again\n"
    assert [info.id for info in blocking.list()] == ["lab"]
    blocking.remove("lab")
    with pytest.raises(NotFoundError):
        sandbox.exec("true")


def test_a_port_inside_is_reached(sandbox: Sandbox) -> None:
    code = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); "
    with sandbox.stream(["python3", "-c", code + "c, _ = s.accept(); c.sendall(c.recv(9).upper())"]) as server:
        events = iter(server)
        port = next(events)
        assert isinstance(port, Output)
        with sandbox.dial(int(port.data)) as connection:
            connection.send(b"word")
            connection.send_eof()
            assert connection.receive() == b"WORD"
            assert connection.receive() == b""


def test_a_server_inside_is_shown_and_attached(sandbox: Sandbox, blocking: Manager) -> None:
    sandbox.files.write("webserver.py", PROGRAM.read_bytes())
    with sandbox.stream(["python3", "webserver.py", "0", "0"]) as server:
        events = iter(server)
        said = next(events)
        assert isinstance(said, Output)
        port, tcp = json.loads(said.data)
        url = sandbox.proxy(port)
        assert url.startswith(blocking.proxy_healthz().address)
        with urllib.request.urlopen(url, timeout=20) as response:
            assert response.read() == b"hello from inside"
        with sandbox.attach(port, path="/ws", subprotocols=["echo"]) as socket:
            socket.write("word")
            assert (socket.read(), socket.subprotocol) == ("word", "echo")
            socket.close(4000, "enough")
            assert (socket.read(), socket.close_code, socket.close_reason) == (None, 4000, "enough")
        with sandbox.attach(port, "sse", path="/events") as stream:
            assert [event.data for event in stream] == [f"event-{number}" for number in range(5)]
            assert "204" in stream.close_reason
        with sandbox.attach(tcp, "tcp") as connection:
            connection.write("word")
            assert next(iter(connection)) == b"word"


def test_errors_are_those_of_the_asynchronous_face(sandbox: Sandbox) -> None:
    with pytest.raises(ExecFailedError) as caught:
        sandbox.exec("echo why >&2; exit 4", check=True)
    assert caught.value.result is not None
    assert caught.value.result.exit_code == 4


def test_a_stream_gives_events_as_they_come(sandbox: Sandbox) -> None:
    with sandbox.stream("echo one; read line; echo $line >&2; exit 5", stdin=True) as stream:
        events = iter(stream)
        assert next(events) == Output(channel=ExecChannel.STDOUT, data="one\n")
        stream.send("two\n")
        assert next(events) == Output(channel=ExecChannel.STDERR, data="two\n")
        last = next(events)
        assert isinstance(last, Exit)
        assert last.status.exit_code == 5
        assert list(events) == []


def test_leaving_a_stream_early_ends_its_command(sandbox: Sandbox) -> None:
    for event in sandbox.stream("echo $$; exec sleep 60"):
        assert isinstance(event, Output)
        pid = int(event.data)
        break
    wait_until(lambda: not is_alive(pid))


@pytest.mark.embedded
def test_a_command_in_the_background_and_a_terminal(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(station, monkeypatch, "embedded")
    with connect() as manager, manager.create("lab") as sandbox:
        command = sandbox.spawn("echo one; read -r word; echo $word; exit 3", stdin=True)
        assert [one.id for one in sandbox.list_commands()] == [command.id]
        with sandbox.command(command.id).attach() as stream:
            stream.send("two\n")
            assert command.wait().exit_code == 3
            assert "".join(event.data for event in stream if isinstance(event, Output)) == "one\ntwo\n"
            assert (stream.offset, stream.lost) == (8, 0)
        assert command.info().exit == command.kill()
        with sandbox.terminal(size=(90, 20)) as terminal:
            terminal.resize(70, 30)
            terminal.send("stty size; exit 4\n")
            events = list(terminal)
        assert "30 70" in "".join(event.data for event in events if isinstance(event, Output))
        assert events[-1] == Exit(status=terminal.wait())
        manager.remove("lab")


def test_input_and_files_take_plain_iterables(sandbox: Sandbox) -> None:
    assert sandbox.exec("cat", stdin=(text for text in ["a", "b"])).stdout == "ab"
    assert sandbox.files.write("data", (b"x" * 2**20 for _ in range(5))).size == 5 * 2**20
    assert sum(len(piece) for piece in sandbox.files.stream("data")) == 5 * 2**20


def test_callbacks_run_in_the_thread_that_waits(sandbox: Sandbox) -> None:
    heard: list[tuple[str, int]] = []

    def on_stdout(text: str) -> None:
        heard.append((text, threading.get_ident()))
        if text == "one\n":
            # It may use the blocking face itself.
            assert sandbox.exec("echo nested").stdout == "nested\n"

    sandbox.exec("echo one; sleep 0.1; echo two", on_stdout=on_stdout)
    assert heard == [("one\n", threading.get_ident()), ("two\n", threading.get_ident())]


def test_a_callback_that_raises_ends_the_command(sandbox: Sandbox) -> None:
    pids: list[int] = []

    def on_stdout(text: str) -> None:
        pids.append(int(text))
        raise LookupError("no place to show it")

    with pytest.raises(LookupError):
        sandbox.exec("echo $$; exec sleep 60", on_stdout=on_stdout)
    assert not is_alive(pids[0])


def test_a_slow_callback_holds_the_command_up(sandbox: Sandbox) -> None:
    sizes: list[int] = []

    def on_stdout(data: bytes) -> None:
        sizes.append(len(data))
        if len(sizes) == 1:
            time.sleep(0.3)

    sandbox.exec("head -c 20000000 /dev/zero", encoding=None, on_stdout=on_stdout)
    assert sum(sizes) == 20_000_000


async def test_it_works_while_a_loop_runs_in_this_thread(station: Station, no_blocking_calls: BlockBuster) -> None:
    no_blocking_calls.deactivate()
    with connect() as manager:
        assert manager.create("lab").exec("echo in a notebook").stdout == "in a notebook\n"


def test_many_threads_use_one_manager(blocking: Manager, sandbox: Sandbox) -> None:
    results: list[str] = []

    def use(number: int) -> None:
        results.extend(sandbox.exec(f"echo {number}").stdout for _ in range(5))

    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(results) == sorted(f"{number}\n" for number in range(8) for _ in range(5))


def test_the_callers_context_reaches_the_loop(station: Station) -> None:
    """In a notebook it decides which cell the output of a callback goes to."""
    cell = contextvars.ContextVar("cell", default="none")
    cell.set("this one")

    async def look() -> str:
        return cell.get()

    assert blocking_loop.background().run(look) == "this one"


def test_a_blocking_call_on_the_loop_itself_is_an_error_and_no_hang(blocking: Manager) -> None:
    async def misuse() -> None:
        blocking.list()

    with pytest.raises(RuntimeError, match="asynchronous face"):
        blocking_loop.background().run(misuse)


def test_a_job_that_is_cancelled_before_it_began_is_done() -> None:
    async def work() -> None:
        await asyncio.Event().wait()

    for _ in range(50):
        job = blocking_loop.background().start(work)
        job.cancel()
        wait_until(job.cancelled, within=5)


# Interrupts

INTERRUPTED = """
import sys, time, yaosb_jupyter
{preparation}
sandbox = yaosb_jupyter.connect().create("lab", stop_timeout=0)
def call():
    {call}
try:
    call()
except KeyboardInterrupt:
    print("interrupted", flush=True)
    print(sandbox.exec("echo usable").stdout, end="")
"""
CALLS = {
    "exec": "sandbox.exec('echo $$ > pid; exec sleep 60')",
    "exec with a callback": "sandbox.exec('echo $$ > pid; echo; exec sleep 60', on_stdout=lambda text: None)",
    "in a callback": "sandbox.exec('echo $$ > pid; echo; exec sleep 60', on_stdout=lambda text: time.sleep(60))",
    "stream": "[None for event in sandbox.stream('echo $$ > pid; exec sleep 60')]",
    "under a loop": "__import__('asyncio').run(under_a_loop())",
}
UNDER_A_LOOP = """
import signal
async def under_a_loop():
    # As in a kernel, whose SIGINT raises where the code is.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sandbox.exec('echo $$ > pid; exec sleep 60')
"""


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_an_interrupt_ends_the_command_and_is_raised(station: Station, blocking: Manager, call: str) -> None:
    """FAULTS J1."""
    client = station.script(INTERRUPTED.format(preparation=UNDER_A_LOOP, call=call))
    pid = _pid(blocking)
    began = time.monotonic()
    os.kill(client.pid, signal.SIGINT)
    wait_until(lambda: not is_alive(pid))
    assert time.monotonic() - began < 2
    out, err = client.communicate(timeout=20)
    assert out == "interrupted\nusable\n", err
    assert "Traceback" not in err


def test_a_second_interrupt_does_not_wait_for_the_first(station: Station, blocking: Manager) -> None:
    call = "sandbox.exec('trap \"\" TERM INT; echo $$ > pid; while :; do sleep 0.1; done')"
    client = station.script(
        INTERRUPTED.format(preparation="", call=call).replace("print(sandbox", "0 and print(sandbox")
    )
    _pid(blocking)
    os.kill(client.pid, signal.SIGINT)
    time.sleep(0.3)  # nothing tells that it waits now
    os.kill(client.pid, signal.SIGINT)
    began = time.monotonic()
    out, _ = client.communicate(timeout=20)
    assert time.monotonic() - began < 8
    assert out == "interrupted\n"


def _pid(manager: Manager) -> int:
    def look() -> int:
        try:
            return int(manager.get("lab").files.read_text("pid"))
        except (NotFoundError, ValueError):
            return 0

    wait_until(look)
    return look()


# Forks and exits


def test_a_forked_process_is_told_and_can_connect_for_itself(station: Station, sandbox: Sandbox) -> None:
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(read_end)
            try:
                sandbox.exec("true")
            except NotAvailableError as error:
                with connect() as manager:
                    told = f"{error.hint} | {manager.get('lab').exec('echo child').stdout}"
                    os.write(write_end, told.encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as told:
        hint, _, output = told.read().partition(" | ")
    os.waitpid(child, 0)
    assert "connect()" in hint
    assert output == "child\n"
    assert sandbox.exec("echo parent").stdout == "parent\n"


def test_a_process_that_does_not_close_ends_quietly(station: Station) -> None:
    code = "import yaosb_jupyter as y; m = y.connect(); s = m.create('lab'); e = iter(s.stream('yes')); next(e)"
    client = station.script(f"import warnings; warnings.simplefilter('error'); {code}", PYTHONDEVMODE="1")
    out, err = client.communicate(timeout=20)
    assert (client.returncode, out, err) == (0, "", "")


# The manager of the process


def test_init_once(station: Station, fresh_process: None) -> None:
    first = init(labels={"a": "b"})
    assert init(labels={"a": "b"}) is first
    assert process_manager() is first
    with pytest.raises(AlreadyExistsError, match="other settings"):
        init(labels={"a": "c"})
    with pytest.raises(AlreadyExistsError):
        init(station.root / "other")
    assert first.create().last_info.labels == {"a": "b"}


def test_manager_connects_by_itself_and_is_one_for_all_threads(station: Station, fresh_process: None) -> None:
    found: list[Manager] = []
    threads = [threading.Thread(target=lambda: found.append(process_manager())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 8
    assert len(set(map(id, found))) == 1
    assert found[0].list() == []


def test_a_failed_init_does_not_stay(station: Station, fresh_process: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("YAO_TAI_ADDR", "tcp://127.0.0.1:1")
        with pytest.raises(yaosb_jupyter.SandboxError):
            process_manager()
    assert process_manager().list() == []


def test_a_manager_without_a_daemon(station: Station) -> None:
    with Manager.open() as manager:
        assert manager.create().exec("echo here").stdout == "here\n"
        assert station.pid == os.getpid()
    assert station.pid is None
