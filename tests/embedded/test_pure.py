"""The rules of the embedded runtime that need no sandbox."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from yaosb_jupyter.errors import InvalidOptionError, RuntimeUnavailableError
from yaosb_jupyter.tai.runtimes.base import Capability, EnvironmentSpec
from yaosb_jupyter.tai.runtimes.embedded.isolation import Found, capabilities, isolation
from yaosb_jupyter.tai.runtimes.embedded.options import EmbeddedOptions, Means
from yaosb_jupyter.tai.runtimes.embedded.plan import working_directory
from yaosb_jupyter.tai.runtimes.embedded.record import EnvironmentRecord
from yaosb_jupyter.tai.runtimes.embedded.trial import Reach
from yaosb_jupyter.tai.runtimes.embedded.view import HostView, environment

CLOSED = Reach(**dict.fromkeys((field.name for field in fields(Reach)), False))
OPEN = Reach(**dict.fromkeys((field.name for field in fields(Reach)), True))
FOUND = Found(
    means=Means.BUBBLEWRAP, alone=CLOSED, bridged=CLOSED, grouped=True, own_user=False, landlock=True, seccomp=True
)
PLAIN = replace(FOUND, means=Means.PLAIN, alone=OPEN, bridged=OPEN, grouped=False, landlock=False, seccomp=False)


def test_plain_must_be_asked_for() -> None:
    assert Means.PLAIN not in EmbeddedOptions.of({}).means
    assert EmbeddedOptions.of({"plain": "yes"}).means[-1] is Means.PLAIN
    with pytest.raises(InvalidOptionError, match="no isolation"):
        EmbeddedOptions.of({"means": "plain"})


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"plain": "maybe"}, "plain"),
        ({"means": "magic"}, "means"),
        ({"uid_range": "0-10"}, "uid_range"),
        ({"uid_range": "10"}, "uid_range"),
        ({"uid_range": "20-10"}, "uid_range"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_bad_option_is_named(options: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidOptionError, match=named):
        EmbeddedOptions.of(options)


def test_no_isolation_is_called_so() -> None:
    told = isolation(PLAIN)
    assert told.means == "no isolation"
    for text in (told.files, told.internet, told.host, told.processes, told.other_sandboxes, told.metadata):
        assert text.startswith("open"), text


@pytest.mark.parametrize("name", [field.name for field in fields(Reach)])
def test_each_thing_that_was_reached_changes_what_is_told(name: str) -> None:
    reached = replace(CLOSED, **{name: True})
    assert isolation(replace(FOUND, alone=reached, bridged=reached)) != isolation(FOUND)


def test_what_only_a_network_opens_is_told_with_it() -> None:
    told = isolation(replace(FOUND, bridged=replace(CLOSED, network=True)))
    assert told.internet.startswith("none; with network=bridge open")


def test_limits_are_told_as_far_as_they_hold() -> None:
    assert {Capability.MEMORY_LIMIT, Capability.CPU_LIMIT, Capability.PIDS_LIMIT} <= capabilities(FOUND)
    without = replace(FOUND, grouped=False)
    assert Capability.MEMORY_LIMIT not in capabilities(without)
    assert "per process" in isolation(without).memory
    assert isolation(without).cpu.startswith("none")
    assert Capability.PIDS_LIMIT in capabilities(without), "a user namespace counts its own"
    landlock = replace(without, means=Means.LANDLOCK, alone=replace(CLOSED, sees_processes=True))
    assert Capability.PIDS_LIMIT not in capabilities(landlock)
    assert Capability.OWN_PIDS not in capabilities(landlock)
    assert isolation(landlock).pids.startswith("none")


def record(workdir: str = "/workspace") -> EnvironmentRecord:
    from datetime import UTC, datetime

    spec = EnvironmentSpec(
        uid="u", name="n", image="", labels={}, directory=Path("/d"), workspace=Path("/d/workspace"), workdir=workdir
    )
    return EnvironmentRecord(spec=spec, created_at=datetime.now(UTC), key="k", user=None)


@pytest.mark.parametrize(
    ("means", "path", "expected"),
    [
        (Means.BUBBLEWRAP, "", "/workspace"),
        (Means.BUBBLEWRAP, "x/y", "/workspace/x/y"),
        (Means.BUBBLEWRAP, "/tmp", "/tmp"),
        (Means.LANDLOCK, "", "/d/workspace"),
        (Means.LANDLOCK, "x", "/d/workspace/x"),
        (Means.LANDLOCK, "/workspace/x", "/d/workspace/x"),
        (Means.LANDLOCK, "/usr", "/usr"),
        (Means.LANDLOCK, "/workspaces", "/workspaces"),
    ],
)
def test_the_workspace_is_where_people_say_it_is(means: Means, path: str, expected: str) -> None:
    assert working_directory(record(), means, path) == expected


def test_the_environment_is_a_list_of_what_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    view = HostView(prefixes=(), python="/usr/bin/python3", path="/usr/bin")
    assert set(environment(view, home="/workspace", temporary="/tmp")) == {
        "PATH", "PYTHONPATH", "PIP_PREFIX", "HOME", "TMPDIR", "LANG", "USER", "LOGNAME", "SHELL",
    }  # fmt: skip


def test_a_python_that_lies_in_the_home_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    with pytest.raises(RuntimeUnavailableError, match="would see all of"):
        HostView.of_this_python()


def test_prefixes_are_those_outside_usr_and_none_within_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.prefix", "/srv/python/venv")
    monkeypatch.setattr("sys.base_prefix", "/srv/python")
    assert HostView.of_this_python().prefixes == ("/srv/python",)
    monkeypatch.setattr("sys.prefix", "/usr")
    monkeypatch.setattr("sys.base_prefix", "/usr/local")
    assert HostView.of_this_python().prefixes == ()
