"""Hostile code in a sandbox: what it can do under each means, and whether that is what people are told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.attacks.places import PLACES, staged
from yaosb_jupyter.guest import landlock

pytestmark = [pytest.mark.embedded, pytest.mark.timeout(150)]

NETWORK = frozenset({"tcp to the host", "udp to the host", "a route out"})
UNDER_BUBBLEWRAP = frozenset({"reach the link"})
UNDER_LANDLOCK = frozenset({"stat", "see another sandbox", "see processes"})
UNDER_OUTER_PROC = UNDER_BUBBLEWRAP | {"see another sandbox", "see processes"}
OF_THE_SAME_USER = frozenset({"chmod", "utime", "more processes than the cap"})
BEFORE_SCOPES = frozenset({"kill a process", "kill a process by its number", "kill another sandbox", "abstract socket"})
"""What Landlock keeps from only since version 6 of its interface."""

EXPECTED = {
    ("root", "bubblewrap"): UNDER_BUBBLEWRAP,
    ("root", "landlock"): UNDER_LANDLOCK,
    ("user", "bubblewrap"): UNDER_BUBBLEWRAP,
    ("user", "landlock"): UNDER_LANDLOCK | OF_THE_SAME_USER,
    ("masked proc", "best"): UNDER_OUTER_PROC,
    ("container", "best"): UNDER_LANDLOCK | OF_THE_SAME_USER,
    ("container root", "best"): UNDER_LANDLOCK,
}
CASES = [(*case, network) for case in EXPECTED for network in ("none", "bridge")]
TOLD = [*CASES, ("root", "plain", "none"), ("user", "plain", "none")]


def outcome(place: str, means: str, network: str) -> dict[str, Any]:
    found = staged(place, means, network)
    assert "unavailable" not in found, found["unavailable"]
    return found


@pytest.mark.parametrize(("place", "means", "network"), CASES)
def test_only_what_is_known_succeeds(place: str, means: str, network: str) -> None:
    attacks = outcome(place, means, network)["attacks"]
    succeeded = {name for name, success in attacks.items() if success}
    expected = EXPECTED[place, means] | (NETWORK if network == "bridge" else frozenset())
    tolerated = BEFORE_SCOPES if means != "bubblewrap" and landlock.version() < 6 else frozenset()
    assert succeeded - tolerated == expected


@pytest.mark.parametrize(("place", "means", "network"), TOLD)
def test_no_daemon_outlives_the_stop(place: str, means: str, network: str) -> None:
    found = outcome(place, means, network)
    assert found["left"] == {"daemon_mark": True, "refork_mark": True}, "the daemons did not run in the first place"
    assert not found["attacks"]["a daemon outlives the stop"]


@pytest.mark.parametrize(("place", "means", "network"), TOLD)
def test_n12_the_link_is_the_guests_alone(place: str, means: str, network: str) -> None:
    attacks = outcome(place, means, network)["attacks"]
    assert not attacks["impersonate without the key"]
    assert not attacks["impersonate with a wrong key"]
    assert not attacks["the link was lost"]
    assert not attacks["read the guest's memory"]
    assert not attacks["read the guest's environment"]


@pytest.mark.parametrize(("place", "means", "network"), TOLD)
def test_nothing_of_the_daemons_environment_comes_in(place: str, means: str, network: str) -> None:
    assert not outcome(place, means, network)["attacks"]["environment of the daemon"]


def told(isolation: dict[str, str], network: str) -> dict[str, Any]:
    """What a reader of the isolation would expect, as outcomes of attacks."""
    here = {name: _with(network, text) for name, text in isolation.items()}
    in_files, _, abstract = (_with(network, part) for part in isolation["unix_sockets"].partition("; abstract ones: "))
    return {
        "files": not here["files"].startswith("hidden"),
        "metadata seen": not here["metadata"].startswith("hidden"),
        "metadata changed": here["metadata"].startswith("open"),
        "sockets in files": not in_files.removeprefix("those in files: ").startswith("none"),
        "abstract sockets": not abstract.startswith("none"),
        "internet": not here["internet"].startswith("none"),
        "lan": not here["lan"].startswith("none"),
        "host": not here["host"].startswith("none"),
        "processes seen": not here["processes"].startswith("hidden"),
        "processes signalled": here["processes"].startswith("open"),
        "other sandboxes read": here["other_sandboxes"].startswith("open"),
        "other sandboxes seen": not here["other_sandboxes"].startswith("hidden"),
        "memory": here["memory"].startswith("none"),
        "pids": here["pids"].startswith("none"),
    }


def _with(network: str, text: str) -> str:
    alone, _, bridged = text.partition("; with network=bridge ")
    return bridged if network == "bridge" and bridged else alone


def found(attacks: dict[str, bool]) -> dict[str, Any]:
    def any_of(*names: str) -> bool:
        return any(attacks[name] for name in names)

    return {
        "files": any_of(
            "read secret", "read secret by link", "read secret by /proc/N/root", "read secret by /proc/N/cwd",
            "read what all may read", "overwrite", "create", "write to /usr",
        ),
        "metadata seen": any_of("stat"),
        "metadata changed": any_of("chmod", "utime"),
        "sockets in files": any_of("path socket"),
        "abstract sockets": any_of("abstract socket"),
        "internet": any_of("a route out"),
        "lan": any_of("a route out"),
        "host": any_of("tcp to the host", "udp to the host"),
        "processes seen": any_of("see processes"),
        "processes signalled": any_of("kill a process", "kill a process by its number"),
        "other sandboxes read": any_of("read another sandbox", "kill another sandbox"),
        "other sandboxes seen": any_of("see another sandbox"),
        "memory": any_of("more memory than the cap"),
        "pids": any_of("more processes than the cap"),
    }  # fmt: skip


@pytest.mark.parametrize(("place", "means", "network"), TOLD)
def test_the_isolation_told_is_the_isolation_found(place: str, means: str, network: str) -> None:
    seen = outcome(place, means, network)
    assert told(seen["isolation"], network) == found(seen["attacks"])


@pytest.mark.parametrize("place", ["container", "container root"])
def test_a_means_that_does_not_work_says_why(place: str) -> None:
    reason = staged(place, "bubblewrap", "none")["unavailable"]
    assert "bubblewrap: " in reason
    assert "plain=yes" in reason


def test_where_proc_is_masked_the_outer_one_is_shown() -> None:
    assert outcome("masked proc", "best", "none")["isolation"]["means"].endswith("Landlock and seccomp")
    reason = staged("masked proc", "bubblewrap", "none")["unavailable"]
    assert "proc" in reason


def test_every_place_is_attacked() -> None:
    assert {place for place, _, _ in CASES} == set(PLACES)
