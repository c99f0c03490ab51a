"""The magics in a real kernel, over a real daemon."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jupyter.kernels import Cell, Kernel, environment, kernel, stop_daemon
from tests.rig.require import require

ADDRESSES = {
    "memory": "memory://kernel",
    "embedded": "embedded",
    "docker": os.environ.get("SANDBOX_TEST_LOCAL_ADDR") or "local",
}


@pytest.fixture(scope="module", params=ADDRESSES)
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel with a sandbox in use."""
    if request.param != "memory":
        require(request.param)
    root = tmp_path_factory.mktemp(request.param)
    try:
        with kernel(environment(root, ADDRESSES[request.param]), root) as made:
            made.do("%sandbox create lab")
            yield made
    finally:
        stop_daemon(root, ADDRESSES[request.param])


def test_output_arrives_as_it_is_written(running: Kernel) -> None:
    """95 of 100 lines are in the iopub message within 50 ms of being written."""
    body = (
        "import time\n"
        "for number in range(100):\n"
        "    print(time.time(), flush=True)\n"
        "    time.sleep(0.005 if number % 4 else 0.06)\n"
    )
    cell = running.do(f"%%sbexec --lang python\n{body}")
    late = sorted(when - float(line) for when, text in cell.pieces() for line in text.split())
    assert len(late) == 100
    assert late[94] < 0.05, f"median {late[50] * 1000:.1f} ms, p95 {late[94] * 1000:.1f} ms"


def test_streams_are_told_apart_in_order_and_with_colours(running: Kernel) -> None:
    cell = running.do("%%sbexec\necho out\nsleep 0.1\nprintf '\\033[31mred\\033[0m\\n' >&2\nsleep 0.1\necho more")
    names = [m["content"]["name"] for _, m in cell.messages if m["msg_type"] == "stream"]
    assert names == ["stdout", "stderr", "stdout"]
    assert cell.stream("stdout") == "out\nmore\n"
    assert cell.stream("stderr") == "\x1b[31mred\x1b[0m\n"


def test_a_progress_bar_keeps_its_carriage_returns(running: Kernel) -> None:
    cell = running.do("%%sbexec\nfor n in 1 2 3; do printf '\\r%s of 3' $n; sleep 0.05; done; echo")
    assert cell.stream("stdout") == "\r1 of 3\r2 of 3\r3 of 3\n"


def test_j11_much_output_is_few_messages_and_a_note(running: Kernel) -> None:
    cell = running.do("%sbexec seq 1 3000000")
    shown = cell.stream("stdout")
    assert len(shown) < 1.1 * 2**20
    assert shown.endswith("\n3000000\n")
    assert "not shown" in cell.stream("stderr")
    assert len(cell.messages) < 100
    assert running.do("print(len(_sb.stdout), _sb.truncated)").stream("stdout") == "22888896 False\n"


def interrupt(running: Kernel, code: str) -> tuple[Cell, float]:
    """Presses the stop button once the cell has written; how long its end took after that."""
    sent = running.send(code)
    cell = running.collect(sent, until=lambda cell: "on\n" in cell.stream("stdout"))
    began = time.monotonic()
    running.manager.interrupt_kernel()
    running.gather(sent, cell)
    return cell, time.monotonic() - began


@pytest.mark.parametrize("body", ["sleep 4321", "trap '' INT TERM; while :; do sleep 1; done"])
def test_j1_the_stop_button_ends_the_command(running: Kernel, body: str) -> None:
    """Within 300 ms; the way of the interrupt and of the kill through the engine is allowed for as it is here, now."""
    began = time.monotonic()
    running.do("%sbexec true")
    trip = time.monotonic() - began
    cell, took = interrupt(running, f"%%sbexec\necho on\n{body}")
    assert cell.error == "KeyboardInterrupt"
    assert took < 0.3 + 2 * trip
    left = "import yaosb_jupyter as yaosb\nprint(list(yaosb.manager().kill_process('lab', '[.]cell-')))"
    assert running.do(left).stream("stdout") == "[]\n"


def test_j1_the_cells_that_follow_an_interrupted_one_do_not_run(running: Kernel) -> None:
    first = running.send("%%sbexec\necho on\nsleep 4321")
    second = running.send("ran = True")
    cell = running.collect(first, until=lambda cell: "on\n" in cell.stream("stdout"))
    running.manager.interrupt_kernel()
    running.gather(first, cell)
    assert running.reply(second)["status"] == "aborted"
    assert running.do("print('ran' in globals())").stream("stdout") == "False\n"


def test_j2_run_all_stops_at_a_failing_command(running: Kernel) -> None:
    first = running.send("%%sbexec\nexit 3")
    second = running.send("ran = True")
    cell = running.collect(first)
    assert cell.error == "ExecFailedError"
    assert len(cell.traceback) <= 2
    assert running.reply(second)["status"] == "aborted"


def test_cards_have_an_html_and_a_text_form(running: Kernel) -> None:
    for code in ("%sandbox info", "%sandbox ls", "%sandbox pools", "%sandbox stats"):
        (bundle,) = running.do(code).bundles()
        assert "yaosb" in bundle["text/html"]
        assert "<" not in bundle["text/plain"].splitlines()[0]


def test_a_long_copy_shows_progress_and_can_be_interrupted(running: Kernel, tmp_path: Path) -> None:
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(20 * 2**30)  # sparse: takes no room here
    sent = running.send(f"%sandbox cp {big} :big")
    cell = running.collect(sent, until=lambda cell: any("20 GiB" in b["text/plain"] for b in cell.bundles()))
    began = time.monotonic()
    running.manager.interrupt_kernel()
    running.gather(sent, cell)
    assert cell.error == "KeyboardInterrupt"
    assert time.monotonic() - began < 5
    assert "big" not in running.do("files = %sandbox files\nprint(files)").stream("stdout")


def test_completion_reaches_the_front_end(running: Kernel) -> None:
    def matches(code: str) -> list[str]:
        return list(running.reply(running.client.complete(code, len(code)))["matches"])

    assert "create" in matches("%sandbox cre")
    assert matches("%%sbexec la") == ["lab"]


def test_help_reaches_the_front_end(running: Kernel) -> None:
    assert "verbs" in running.reply(running.client.inspect("%sandbox", 8))["data"]["text/plain"]


def test_the_notebook_and_its_python_see_the_same_sandboxes(running: Kernel) -> None:
    cell = running.do("import yaosb_jupyter as yaosb\nprint(yaosb.manager().get('lab').exec('echo hi').stdout)")
    assert cell.stream("stdout") == "hi\n\n"
