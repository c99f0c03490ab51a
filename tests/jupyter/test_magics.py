"""The magics in a shell of this process."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError

from tests.jupyter.conftest import Notebook
from yaosb_jupyter.choices import Lifecycle, Status, VncStatus
from yaosb_jupyter.errors import (
    AlreadyExistsError,
    ExecFailedError,
    ExecTimeoutError,
    InvalidOptionError,
    NotFoundError,
    NotRunningError,
)
from yaosb_jupyter.jupyter.arguments import sandbox_parser
from yaosb_jupyter.jupyter.links import DesktopLink
from yaosb_jupyter.jupyter.verbs import Verbs
from yaosb_jupyter.types import Desktop


def test_every_verb_is_done_by_something() -> None:
    assert {name for name in sandbox_parser().verbs if not hasattr(Verbs, name)} == {"help"}


def test_a_sandbox_is_created_used_and_removed(notebook: Notebook) -> None:
    notebook.run("%sandbox create lab --label team=ml --lifecycle persistent")
    card = notebook.value
    assert (card.info.id, card.info.lifecycle, card.info.labels) == ("lab", Lifecycle.PERSISTENT, {"team": "ml"})
    assert "lab" in card._repr_html_()
    assert notebook.run("%%sbexec\necho hello\necho oops >&2").stdout == "hello\n"
    notebook.run("%sandbox ls")
    assert [info.id for info in notebook.value] == ["lab"]
    assert "here" in repr(notebook.value)
    assert "removed: lab" in shown(notebook, "%sandbox rm lab")
    notebook.run("%sandbox ls")
    assert len(notebook.value) == 0


def shown(notebook: Notebook, cell: str) -> str:
    """All that a cell showed, as text."""
    captured = notebook.run(cell)
    return captured.stdout + captured.stderr + "".join(out.data["text/plain"] for out in captured.outputs)


def test_a_second_create_of_one_name_is_refused_and_reuse_takes_it(notebook: Notebook) -> None:
    notebook.run("%sandbox create lab")
    uid = notebook.value.info.uid
    with pytest.raises(AlreadyExistsError):
        notebook.run("%sandbox create lab")
    notebook.run("%sandbox create lab --reuse")
    assert notebook.value.info.uid == uid


def test_without_a_sandbox_a_cell_makes_one_for_the_notebook_and_says_so(notebook: Notebook) -> None:
    told = shown(notebook, "%%sbexec\necho hi")
    assert "hi\n" in told
    assert "'notebook-1'" in told
    assert "notebook-1" not in shown(notebook, "%%sbexec\necho again")
    notebook.run("%sandbox info")
    assert (notebook.value.info.id, notebook.value.info.lifecycle) == ("notebook-1", Lifecycle.SESSION)


def test_the_notebooks_own_sandbox_is_started_or_made_again(notebook: Notebook) -> None:
    notebook.run("%sbexec touch kept")
    notebook.run("%sandbox stop --timeout 1s")
    assert notebook.run("%sbexec ls").stdout == "kept\n"
    notebook.portal.call(notebook.manager().remove, "notebook-1")
    told = shown(notebook, "%sbexec ls")
    assert "kept" not in told
    assert "'notebook-1'" in told


def test_a_sandbox_in_use_that_is_gone_is_not_replaced_silently(notebook: Notebook) -> None:
    notebook.run("%sandbox create lab")
    notebook.portal.call(notebook.manager().remove, "lab")
    for cell in ("%sbexec true", "%sandbox info"):
        with pytest.raises(NotFoundError, match=r"'lab'.* is gone"):
            notebook.run(cell)


def test_verbs_without_a_sandbox_tell_what_to_do(notebook: Notebook) -> None:
    with pytest.raises(NotFoundError, match="%sandbox create"):
        notebook.run("%sandbox info")
    with pytest.raises(NotFoundError, match="nobody"):
        notebook.run("%%sbexec nobody\ntrue")


def test_use_changes_the_sandbox_in_use(notebook: Notebook) -> None:
    notebook.run("%sandbox create one")
    notebook.run("%sandbox create two")
    notebook.run("%sandbox use one")
    notebook.run("%sbexec touch made-in-one")
    notebook.run("%sandbox files one:")
    assert [file.name for file in notebook.value] == ["made-in-one"]
    notebook.run("%sandbox files two:")
    assert len(notebook.value) == 0


def test_j2_a_non_zero_exit_raises_unless_told_otherwise(notebook: Notebook) -> None:
    with pytest.raises(ExecFailedError, match="exit code 3"):
        notebook.run("%%sbexec\necho out\nexit 3")
    assert notebook.shell.user_ns["_sb"].exit_code == 3
    notebook.run("%%sbexec --no-raise\nexit 4")
    assert notebook.shell.user_ns["_sb"].exit_code == 4
    with pytest.raises(ExecFailedError):
        notebook.run("%sbexec exit 5")


def test_j10_neither_body_nor_command_is_expanded(notebook: Notebook) -> None:
    notebook.shell.user_ns["x"] = "EXPANDED"
    assert notebook.run("%%sbexec\nx=1\necho {x} $x").stdout == "{x} 1\n"
    assert notebook.run("%sbexec x=2; echo {x} $x").stdout == "{x} 2\n"
    notebook.run("%%sbwrite file\n{x} $x")
    assert notebook.run("%sbexec cat file").stdout.strip() == "{x} $x"


def test_variables_expand_in_the_lines_of_sandbox(notebook: Notebook) -> None:
    notebook.shell.user_ns["name"] = "lab"
    notebook.run("%sandbox create {name}")
    assert notebook.value.info.id == "lab"


def test_stdout_and_stderr_go_to_their_streams(notebook: Notebook) -> None:
    notebook.run("%sandbox create lab")
    captured = notebook.run("%%sbexec\necho out\necho err >&2\nprintf '\\033[31mred\\033[0m\\n'")
    assert (captured.stdout, captured.stderr) == ("out\n\x1b[31mred\x1b[0m\n", "err\n")


def test_the_result_is_kept_in_a_variable(notebook: Notebook) -> None:
    notebook.run("%%sbexec -o result\necho out; echo err >&2")
    result = notebook.shell.user_ns["result"]
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 0)
    assert result is notebook.shell.user_ns["_sb"]


def test_flags_of_a_cell(notebook: Notebook) -> None:
    notebook.run("%sandbox create lab")
    notebook.run("%%sbwrite sub/data.txt\ncontent\n")
    notebook.shell.user_ns["data"] = "given"
    cell = "%%sbexec lab --lang python --cwd sub --env 'A=b c' --stdin data\nimport os, sys\n"
    body = "print(os.environ['A'], sys.stdin.read(), open('data.txt').read())"
    assert notebook.run(cell + body).stdout == "b c given content\n\n"


def test_input_must_be_text_or_bytes(notebook: Notebook) -> None:
    notebook.shell.user_ns["number"] = 3
    with pytest.raises(InvalidOptionError, match="int"):
        notebook.run("%%sbexec --stdin number\ncat")
    with pytest.raises(InvalidOptionError, match="no such variable"):
        notebook.run("%%sbexec --stdin nothing\ncat")


def test_a_timeout_raises_and_keeps_the_output(notebook: Notebook) -> None:
    with pytest.raises(ExecTimeoutError):
        notebook.run("%%sbexec --timeout 300ms\necho before\nsleep 60")
    assert notebook.shell.user_ns["_sb"].stdout == "before\n"


def test_a_sandbox_for_once_is_gone_afterwards(notebook: Notebook) -> None:
    told = shown(notebook, "%%sbexec --rm --get out.txt\necho made > out.txt")
    assert Path("out.txt").read_text() == "made\n"
    assert "out.txt" in told
    with pytest.raises(ExecFailedError):
        notebook.run("%%sbexec --rm\nfalse")
    with pytest.raises(ExecFailedError):
        notebook.run("%%sbexec --rm --get out.txt\nfalse")
    notebook.run("%sandbox ls")
    assert len(notebook.value) == 0


def test_files_are_brought_here_after_a_failure_too(notebook: Notebook) -> None:
    with pytest.raises(ExecFailedError):
        notebook.run("%%sbexec --get log --get never\necho why > log; exit 1")
    assert Path("log").read_text() == "why\n"
    with pytest.raises(NotFoundError, match="never"):
        notebook.run("%%sbexec -o r --get never\necho done")
    assert notebook.shell.user_ns["r"].stdout == "done\n"
    assert notebook.shell.user_ns["_sb"] is notebook.shell.user_ns["r"]


def test_cp_goes_both_ways(notebook: Notebook) -> None:
    notebook.run("%sandbox create lab")
    Path("tree/sub").mkdir(parents=True)
    Path("tree/sub/a").write_text("1")
    Path("tree/b").write_text("2")
    assert "2 files" in shown(notebook, "%sandbox cp tree lab:copy")
    notebook.run("%sandbox cp :copy/sub/a back")
    assert Path("back").read_text() == "1"
    notebook.run("%sandbox files copy")
    assert [file.name for file in notebook.value] == ["sub", "b"]
    lines = repr(notebook.value).splitlines()
    assert (lines[0], lines[-1]) == ("lab:copy", "1 directory, 1 file, 1 B")
    notebook.run("%sandbox files copy/b")
    assert [file.path for file in notebook.value] == ["copy/b"]
    notebook.run("%sandbox create other")
    told = shown(notebook, "%sandbox cp lab:copy/* 'lab:copy/b' other:").splitlines()
    assert told[-4:] == [
        "lab:copy/b -> other:b (1 B)",
        "lab:copy/sub -> other:sub (1 B)",
        "lab:copy/b -> other:b (1 B)",
        "3 files, 3 B in all",
    ]
    with pytest.raises(InvalidOptionError, match="NAME:path"):
        notebook.run("%sandbox cp a b")


def test_stop_keeps_the_files_and_start_goes_on(notebook: Notebook) -> None:
    notebook.run("%sandbox create lab")
    notebook.run("%%sbwrite kept\nx")
    assert "lab" in shown(notebook, "%sandbox stop --timeout 1s")
    notebook.run("%sandbox info")
    assert notebook.value.info.status is Status.STOPPED
    with pytest.raises(NotRunningError):
        notebook.run("%sbexec true")
    assert "lab" in shown(notebook, "%sandbox start")
    assert notebook.run("%sbexec cat kept").stdout == "x\n"


def test_stats_pools_and_logs(notebook: Notebook) -> None:
    notebook.run("%sandbox create lab --cmd 'echo main; sleep 600'")
    notebook.run("%sandbox stats")
    assert notebook.value.stats.pids >= 1
    notebook.run("%sandbox pools")
    assert [pool.name for pool in notebook.value] == ["memory"]
    assert "main\n" in shown(notebook, "%sandbox logs")


def test_j9_a_pull_is_told(notebook: Notebook) -> None:
    assert "pulled: some/image:1" in shown(notebook, "%sandbox pull some/image:1")


def test_a_link_to_a_port_is_shown(notebook: Notebook) -> None:
    notebook.run("%sandbox create lab")
    notebook.run("%sandbox proxy 8080 '/a?<b>'")
    link = notebook.value
    assert link.url.startswith("http://127.0.0.1:")
    assert link.url.endswith("/a?%3Cb%3E")
    assert repr(link) == link.url
    html = link._repr_html_()
    assert f'href="{link.url}"' in html
    assert 'rel="noopener noreferrer"' in html
    assert "<iframe" not in html
    notebook.run("%sandbox create other")
    notebook.run("%sandbox proxy 8080 --sandbox lab --show")
    assert notebook.value.url == link.url.removesuffix("a?%3Cb%3E")
    assert 'sandbox="allow-scripts allow-forms allow-popups"' in notebook.value._repr_html_()


def test_a_desktop_that_is_not_there_is_told(notebook: Notebook) -> None:
    notebook.run("%sandbox create lab")
    notebook.run("%sandbox vnc --show")
    assert notebook.value.url == ""
    assert repr(notebook.value).startswith("lab: there is no desktop; on Docker: yaosb image build desktop")
    assert "--vnc" in notebook.value._repr_html_()
    assert "<iframe" not in notebook.value._repr_html_()


def test_a_link_to_a_desktop_is_shown() -> None:
    page = "http://127.0.0.1:1/secret/"
    desktop = Desktop(status=VncStatus.READY, page=page, url="ws://127.0.0.1:1/secret/websocket")
    link = DesktopLink(sandbox="<lab>", desktop=desktop)
    assert (link.url, repr(link)) == (page, page)
    assert f'href="{page}"' in link._repr_html_()
    assert "&lt;lab&gt;, desktop" in link._repr_html_()
    assert "<iframe" not in link._repr_html_()
    shown = DesktopLink(sandbox="lab", desktop=desktop, show=True)._repr_html_()
    assert 'sandbox="allow-scripts allow-same-origin"' in shown


def test_write_takes_paths_with_a_name(notebook: Notebook) -> None:
    notebook.run("%sandbox create one")
    notebook.run("%sandbox create two")
    assert "one:d/f" in shown(notebook, "%%sbwrite one:d/f\nint x = 1;\n")
    assert notebook.run("%sbexec --sandbox one cat d/f").stdout == "int x = 1;\n"


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("%sandbox", "verbs"),
        ("%sandbox help", "verbs"),
        ("%sandbox help create", "--idle-timeout"),
        ("%sandbox create -h", "--idle-timeout"),
        ("%sbexec -h", "--sandbox"),
        ("%%sbexec --help\nx", "--no-raise"),
        ("%%sbwrite -h\nx", "PATH"),
    ],
)
def test_help_is_shown(notebook: Notebook, cell: str, told: str) -> None:
    assert told in shown(notebook, cell)


def test_the_magics_tell_about_themselves(notebook: Notebook) -> None:
    for name, told in (("%sandbox", "verbs"), ("%%sbexec", "--no-raise"), ("%%sbwrite", "workspace")):
        assert told in notebook.shell.object_inspect(name)["docstring"]


def test_a_bad_line_is_a_usage_error(notebook: Notebook) -> None:
    with pytest.raises(UsageError, match="--colour"):
        notebook.run("%sandbox create --colour red")


def test_an_error_is_shown_in_a_line_or_two_without_our_stack(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.run("%sandbox create lab")
    assert not notebook.shell.run_cell("%sbexec exit 7").success
    told = capsys.readouterr()
    lines = (told.out + told.err).strip().splitlines()
    assert len(lines) <= 2
    assert "ExecFailedError" in lines[0]
    assert "'lab'" in lines[0]
    assert "exit code 7" in lines[0]


def test_an_error_has_no_colours_where_the_shell_has_none(
    notebook: Notebook, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run("%sandbox create lab")
    monkeypatch.setattr(notebook.shell, "colors", "nocolor")
    notebook.shell.run_cell("%sbexec exit 7")
    told = capsys.readouterr()
    assert "ExecFailedError in sandbox 'lab'" in told.out + told.err
    assert "\x1b" not in told.out + told.err


def test_a_command_that_did_not_start_has_no_result(notebook: Notebook) -> None:
    notebook.run("%%sbexec -o r\necho of another cell")
    with pytest.raises(NotFoundError, match="nobody"):
        notebook.run("%%sbexec nobody -o r\ntrue")
    assert notebook.shell.user_ns["r"] is None
    assert notebook.shell.user_ns["_sb"] is None


def test_scripts_of_cells_are_not_listed(notebook: Notebook) -> None:
    notebook.run("%sandbox create lab")
    notebook.run("%%sbwrite .cell-0123abcd-4567cdef.sh\ntrue")
    notebook.run("%%sbwrite .cell-diagram.svg\ntrue")
    notebook.run("%sandbox files")
    assert [file.name for file in notebook.value] == [".cell-diagram.svg"]


def interrupt_when(path: Path) -> threading.Thread:
    """Sends this process a SIGINT once the file is there."""
    gone = threading.Event()

    def wait() -> None:
        while not path.exists():
            gone.wait(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def test_j1_an_interrupt_ends_the_command_and_stops_the_notebook(notebook: Notebook, tmp_path: Path) -> None:
    notebook.run("%sandbox create lab")
    notebook.shell.user_ns["word"] = "on\n"  # it is sent once the command is known to run
    waiter = interrupt_when(tmp_path / "started")
    with pytest.raises(KeyboardInterrupt):
        notebook.run(f"%%sbexec -o r --stdin word\ncat\ntouch {tmp_path}/started\nsleep 1234567")
    waiter.join(5)
    assert notebook.shell.user_ns["r"].stdout == "on\n"
    assert notebook.shell.user_ns["_sb"] is notebook.shell.user_ns["r"]
    manager = notebook.manager()
    assert notebook.portal.call(manager.kill_process, "lab", "1234567") == []
    assert notebook.run("%sbexec echo still here").stdout == "still here\n"


def completions(notebook: Notebook, line: str) -> list[str]:
    """The last word of the line as each completion makes it, asked for as the kernel does."""
    with provisionalcompleter():
        found = list(notebook.shell.Completer.completions(line, len(line)))
    return [(line[: one.start] + one.text).split()[-1] for one in found]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("%sandbox cre", "create"),
        ("%sandbox create --li", "--lifecycle"),
        ("%sandbox create --lifecycle lo", "long-running"),
        ("%sandbox create --network al", "allowlist"),
        ("%sandbox create --pool me", "memory"),
        ("%sandbox info la", "lab"),
        ("%sandbox rm lab o", "other"),
        ("%sandbox help cre", "create"),
        ("%sandbox files da", "data/"),
        ("%sandbox files data/tr", "data/train.csv"),
        ("%sandbox cp la", "lab:"),
        ("%%sbexec la", "lab"),
        ("%%sbexec --no", "--no-raise"),
        ("%%sbexec --lang pyt", "python"),
        ("%%sbexec --get data/t", "data/train.csv"),
        ("%sbexec --sandbox la", "lab"),
        ("%%sbwrite data/tr", "data/train.csv"),
    ],
)
def test_completion(notebook: Notebook, line: str, found: str) -> None:
    notebook.run("%sandbox create other")
    notebook.run("%sandbox create lab")
    notebook.run("%%sbwrite data/train.csv\nx")
    assert found in completions(notebook, line)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("%sandbox cp lab:", {"data/", "draft"}),
        ("%sandbox create --li", {"--lifecycle"}),
        ("%sandbox files da", {"data/", "dab:"}),
        ("%sandbox info ", {"lab", "dab"}),
        ("%%sbexec da", {"dab"}),
    ],
)
def test_completion_offers_no_names_of_python_beside_what_it_knows(
    notebook: Notebook, line: str, found: set[str]
) -> None:
    for cell in ("%sandbox create dab", "%sandbox create lab", "%%sbwrite data/train.csv\nx", "%%sbwrite draft\nx"):
        notebook.run(cell)
    notebook.run("data = date = dab = 1")
    assert {text.removeprefix("lab:") for text in completions(notebook, line)} == found


def test_completion_of_a_copy_offers_files_here_too(notebook: Notebook) -> None:
    notebook.run("%sandbox create lab")
    Path("laboratory.txt").write_text("")
    notebook.run("labels = 1")
    assert set(completions(notebook, "%sandbox cp la")) == {"lab:", "laboratory.txt"}


def test_completion_of_a_path_with_a_name_replaces_what_follows_the_colon(notebook: Notebook) -> None:
    notebook.run("%sandbox create lab")
    notebook.run("%%sbwrite data/train.csv\nx")
    assert "lab:data/train.csv" in completions(notebook, "%sandbox cp lab:data/tr")


def test_completion_makes_no_connection(notebook: Notebook) -> None:
    assert "lab" not in completions(notebook, "%sandbox info la")
    assert notebook.session.connected is None
