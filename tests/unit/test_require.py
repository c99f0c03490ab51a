"""The rule of `YAOSB_REQUIRE`: a missing rig skips, unless it is named."""

from __future__ import annotations

import pytest

from tests.rig import require as rig


@pytest.fixture
def nothing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig, "PROBES", {"docker": lambda: "no engine", "root": lambda: None})
    monkeypatch.setattr(rig, "missing", lambda name: rig.PROBES[name]())
    monkeypatch.delenv("YAOSB_REQUIRE", raising=False)


@pytest.mark.usefixtures("nothing_here")
def test_missing_skips_with_the_reason() -> None:
    with pytest.raises(pytest.skip.Exception, match="docker: no engine"):
        rig.require("docker")


@pytest.mark.usefixtures("nothing_here")
def test_missing_fails_when_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YAOSB_REQUIRE", "root, docker")
    with pytest.raises(pytest.fail.Exception, match="no engine"):
        rig.require("docker")


@pytest.mark.usefixtures("nothing_here")
def test_present_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YAOSB_REQUIRE", "root")
    rig.require("root")


def test_unknown_name_is_refused(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    monkeypatch.setenv("YAOSB_REQUIRE", "docker,dokcer")
    with pytest.raises(pytest.UsageError, match="dokcer"):
        rig.pytest_configure(pytestconfig)
