from __future__ import annotations

from dataclasses import fields

import pytest
from IPython.core.error import UsageError

from yaosb_jupyter.choices import Lifecycle, Network
from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.jupyter.arguments import (
    cell_parser,
    create_fields,
    line_parser,
    sandbox_parser,
    write_parser,
)
from yaosb_jupyter.jupyter.parser import HelpRequested
from yaosb_jupyter.options import CreateOptions, PortMapping

VERBS = tuple("create ls use info start stop rm logs stats pools pull files cp help".split())  # noqa: SIM905


def created(line: str) -> CreateOptions:
    args = sandbox_parser().parse_line(f"create {line}")
    return CreateOptions.of(args.id, **create_fields(args))


def test_create_has_a_flag_for_every_field_of_create_options() -> None:
    flags = vars(sandbox_parser().parse_line("create")).keys() - {"verb", "reuse"}
    assert flags == {field.name for field in fields(CreateOptions)}


def test_create_without_flags_gives_the_defaults() -> None:
    assert created("") == CreateOptions()


def test_create_flags_become_options() -> None:
    options = created(
        "lab --image python:3.12 --pool p --lifecycle long_running --idle-timeout 30m --max-lifetime 8h "
        "--stop-timeout 5 --memory 2g --cpus 0.5 --pids 64 --gpus 1 --network none --port 8080 --port 9000:80/udp "
        "--env A=1 --env B='x y=z' --label team=ml --user root --workdir /srv --workspace /data --cmd 'serve it' "
        "--vnc --owner ada --chat c1 --no-start"
    )
    assert options == CreateOptions(
        id="lab",
        image="python:3.12",
        pool="p",
        lifecycle=Lifecycle.LONG_RUNNING,
        idle_timeout=1800.0,
        max_lifetime=28800.0,
        stop_timeout=5.0,
        memory=2 * 2**30,
        cpus=0.5,
        pids=64,
        gpus="1",
        network=Network.NONE,
        ports=(PortMapping(container_port=8080), PortMapping(container_port=80, host_port=9000, protocol="udp")),
        env={"A": "1", "B": "x y=z"},
        labels={"team": "ml"},
        user="root",
        workdir="/srv",
        workspace="/data",
        cmd=("sh", "-c", "serve it"),
        vnc=True,
        owner="ada",
        chat="c1",
        start=False,
    )


def test_a_bad_value_names_its_field() -> None:
    with pytest.raises(InvalidOptionError, match="memory"):
        created("--memory lots")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("create --colour red", "--colour"),
        ("creat", "invalid choice"),
        ("create --env A", "KEY=VALUE"),
        ("create --cpus many", "cpus"),
        ("stop --timeout banana", "timeout='banana' is not valid; accepted: seconds"),
        ("create 'lab", "quotes"),
    ],
)
def test_a_bad_line_is_a_usage_error_that_tells_what_is_wrong(line: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        sandbox_parser().parse_line(line)


def test_flags_are_not_abbreviated() -> None:
    with pytest.raises(UsageError):
        sandbox_parser().parse_line("create --mem 1g")


@pytest.mark.parametrize("line", ["-h", "create --help", "cp -h"])
def test_help_is_asked_for_by_flag(line: str) -> None:
    with pytest.raises(HelpRequested, match="usage: %sandbox"):
        sandbox_parser().parse_line(line)


def test_every_verb_of_the_plan_is_there() -> None:
    with pytest.raises(HelpRequested) as told:
        sandbox_parser().parse_line("-h")
    for verb in [
        "create",
        "ls",
        "use",
        "info",
        "start",
        "stop",
        "rm",
        "logs",
        "stats",
        "pools",
        "pull",
        "files",
        "cp",
        "help",
    ]:
        assert f"\n    {verb} " in str(told.value)


def test_cell_flags() -> None:
    args = cell_parser().parse_line(
        "lab --lang python --timeout 90s --cwd sub --env K=V --user root -o out --no-raise --stdin data --rm "
        "--get a.png --get b.json"
    )
    assert vars(args) == {
        "ref": "lab",
        "lang": "python",
        "timeout": 90.0,
        "cwd": "sub",
        "env": {"K": "V"},
        "user": "root",
        "out": "out",
        "no_raise": True,
        "stdin": "data",
        "rm": True,
        "get": ["a.png", "b.json"],
    }


@pytest.mark.parametrize(
    ("line", "timeout", "command"),
    [
        ("ls -la", None, "ls -la"),
        ("--timeout 5 ls -la", 5.0, "ls -la"),
        ("--timeout 5 -- -odd", 5.0, "-odd"),
        ("--no-raise --timeout '5 s' echo \"a  b\" '$x'", 5.0, "echo \"a  b\" '$x'"),
        ("echo 'it''s' | grep -c --timeout 3", None, "echo 'it''s' | grep -c --timeout 3"),
        ('echo "unbalanced', None, 'echo "unbalanced'),
    ],
)
def test_the_command_of_a_line_is_taken_as_it_stands(line: str, timeout: float | None, command: str) -> None:
    args, rest = line_parser().parse_leading(line)
    assert (args.timeout, rest) == (timeout, command)


def test_an_unknown_option_before_the_command_is_refused() -> None:
    with pytest.raises(UsageError, match="--tmeout"):
        line_parser().parse_leading("--tmeout 5 ls")


def test_write_needs_a_path() -> None:
    assert write_parser().parse_line("'my file.txt'").path == "my file.txt"
    with pytest.raises(UsageError, match="path"):
        write_parser().parse_line("")
