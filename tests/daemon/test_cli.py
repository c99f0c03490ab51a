"""``yaosb`` in a shell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.daemon.conftest import Station, is_alive, wait_until
from yaosb_jupyter import cli
from yaosb_jupyter.version import __version__


class Shell:
    """Runs ``yaosb`` as a program."""

    def __init__(self, station: Station) -> None:
        self._station = station

    def __call__(
        self, *arguments: str, code: int | None = 0, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "yaosb_jupyter", *arguments],
            env=self._station.environ,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert code in (None, done.returncode), done.stderr
        assert "Traceback" not in done.stderr
        return done


@pytest.fixture
def yaosb(station: Station) -> Shell:
    return Shell(station)


def test_from_create_to_rm(yaosb: Shell) -> None:
    assert yaosb("create", "lab", "--lifecycle", "longrunning", "--memory", "64m").stdout == "lab\n"
    headings, row = yaosb("ls").stdout.splitlines()
    assert headings.split() == ["ID", "STATUS", "LIFECYCLE", "POOL", "IMAGE", "AGE", "EXPIRES"]
    assert row.split()[:4] == ["lab", "running", "long-running", "default"]
    (info,) = json.loads(yaosb("ls", "--json").stdout)
    assert (info["id"], info["status"]) == ("lab", "running")
    failed = yaosb("rm", "lab", "nothing", code=1)
    assert failed.stdout == "", "nothing is removed where one of them is not there"
    assert "nothing" in failed.stderr
    assert yaosb("rm", "lab").stdout == "lab\n"
    assert yaosb("ls").stdout.split() == headings.split()


def test_exec_passes_outputs_input_and_the_exit_code(yaosb: Shell) -> None:
    yaosb("create", "lab")
    done = yaosb("exec", "lab", "--", "sh", "-c", "echo out; echo err >&2; exit 7", code=7)
    assert (done.stdout, done.stderr) == ("out\n", "err\n")
    assert yaosb("exec", "lab", "cat", stdin="unseen").stdout == ""
    assert yaosb("exec", "-i", "lab", "cat", stdin="passed on").stdout == "passed on"
    assert "no-such-command" in yaosb("exec", "lab", "no-such-command", code=127).stderr


def test_exec_takes_variables(yaosb: Shell) -> None:
    yaosb("create", "lab")
    assert yaosb("exec", "--env", "A=1=2", "--env", "B=", "lab", "sh", "-c", 'echo "$A-$B-"').stdout == "1=2--\n"
    assert "K=V" in yaosb("exec", "--env", "A", "lab", "true", code=1).stderr


def test_files_are_copied_and_listed(yaosb: Shell, tmp_path: Path) -> None:
    yaosb("create", "lab")
    yaosb("create", "other")
    for name in ("a.csv", "b.csv", "c.txt"):
        (tmp_path / name).write_text(name)
    told = yaosb("cp", f"{tmp_path}/*.csv", "lab:data/").stdout.splitlines()
    assert told == [f"{tmp_path}/{name} -> lab:data/{name} (1 files, 5 B)" for name in ("a.csv", "b.csv")]
    yaosb("cp", "lab:data", "other:")
    yaosb("cp", "other:data/b.csv", str(tmp_path / "back"))
    assert (tmp_path / "back").read_text() == "b.csv"
    yaosb("exec", "lab", "sh", "-c", "ln -s a.csv data/link; mkdir 'data/d\033[2J'")
    lines = yaosb("files", "lab:data").stdout.splitlines()
    assert lines[0].split() == ["MODE", "SIZE", "MODIFIED", "NAME"]
    assert lines[1].startswith("-rw-r--r--")
    assert lines[1].endswith("a.csv")
    assert lines[3].endswith("d\\x1b[2J/")
    assert lines[4].endswith("link -> a.csv")
    assert [each["name"] for each in json.loads(yaosb("files", "other", "--json").stdout)] == ["data"]
    assert [each["path"] for each in json.loads(yaosb("files", "lab:data/a.csv", "--json").stdout)] == ["data/a.csv"]
    assert "no such file" in yaosb("files", "lab:nothing", code=1).stderr
    assert "max-size" in yaosb("cp", "--max-size", "1", "lab:data/a.csv", str(tmp_path / "no"), code=1).stderr
    assert not (tmp_path / "no").exists()


def test_exec_can_be_interrupted(yaosb: Shell, station: Station) -> None:
    yaosb("create", "lab")
    command = subprocess.Popen(
        [sys.executable, "-m", "yaosb_jupyter", "exec", "lab", "--", "sh", "-c", "echo $$; exec sleep 60"],
        env=station.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert command.stdout is not None
    pid = int(command.stdout.readline())
    os.kill(command.pid, signal.SIGINT)
    _, err = command.communicate(timeout=20)
    assert command.returncode == cli.INTERRUPTED, err
    assert "Traceback" not in err
    wait_until(lambda: not is_alive(pid))


def test_shutdown(yaosb: Shell, station: Station) -> None:
    yaosb("ls")
    pid = station.pid
    assert yaosb("shutdown").stdout == f"stopped the daemon (process {pid})\n"
    assert station.pid is None
    assert yaosb("shutdown").stdout == "no daemon runs\n"


def test_stop_and_start_are_for_sandboxes(yaosb: Shell) -> None:
    yaosb("create", "lab")
    yaosb("create", "other")
    assert yaosb("stop", "lab", "other").stdout == "lab\nother\n"
    assert [info["status"] for info in json.loads(yaosb("ls", "--json").stdout)] == ["stopped", "stopped"]
    assert yaosb("start", "lab").stdout == "lab\n"
    assert yaosb("exec", "lab", "true").returncode == 0


def test_other_settings_than_the_daemons_are_a_warning_in_a_line(yaosb: Shell, station: Station) -> None:
    yaosb("create", "lab")
    station.environ["YAO_SANDBOX_MEMORY"] = "64m"
    done = yaosb("ls")
    assert "lab" in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("yaosb: warning: ")
    assert "memory" in line


def test_doctor_tells_what_is_there(yaosb: Shell) -> None:
    before = yaosb("doctor", code=None)
    for name in ("python", "data directory", "daemon", "docker", "embedded"):
        assert f"  {name}: " in before.stdout
    assert "does not run" in before.stdout
    assert before.returncode == int("!!  " in before.stdout)  # whether sandboxes can be made depends on the machine
    yaosb("ls")
    findings = {each["name"]: each for each in json.loads(yaosb("doctor", "--json", code=None).stdout)}
    assert findings["daemon"]["health"] == "good"
    assert __version__ in findings["python"]["found"]
    assert all(each["advice"] or each["health"] != "bad" for each in findings.values())


def test_errors_are_one_line_and_what_to_do(yaosb: Shell, station: Station) -> None:
    station.environ["YAO_TAI_ADDR"] = "tcp://127.0.0.1:1"
    failed = yaosb("ls", code=1)
    assert failed.stderr.startswith("yaosb: ")
    assert "127.0.0.1" in failed.stderr
    assert str(station.place.log) in failed.stderr
    assert len(failed.stderr.splitlines()) == 2


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["rm"], ["stop"], ["ls", "--bad"]])
def test_what_is_not_understood_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"yaosb {__version__}\n"
