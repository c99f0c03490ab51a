"""The pure rules: demultiplexing, reports, users, images' names, the engine's errors."""

from __future__ import annotations

import io
import itertools
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.errors import (
    CommandNotFoundError,
    ImageNotFoundError,
    InvalidOptionError,
    LimitExceededError,
    NotRunningError,
    ProtocolError,
    RuntimeUnavailableError,
    SandboxError,
    UnavailableError,
)
from yaosb_jupyter.tai.runtimes.docker.demux import Demultiplexer, Report, ReportFinder
from yaosb_jupyter.tai.runtimes.docker.failures import api_error, pull_error, start_error
from yaosb_jupyter.tai.runtimes.docker.images import check_name, split_reference
from yaosb_jupyter.tai.runtimes.docker.options import UidRange
from yaosb_jupyter.tai.runtimes.docker.probe import lan_gateway
from yaosb_jupyter.tai.runtimes.docker.users import Identity, account_archive, allocate, named_identity
from yaosb_jupyter.tai.runtimes.docker.workspace import environment_script

NONCE = b"\x1e0123456789abcdef"
PASSWD = "root:x:0:0::/root:/bin/sh\nann:x:1001:1002::/home/ann:/bin/sh\nbroken\n"
GROUP = "root:x:0:\nstaff:x:50:ann\n"


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(c % (len(data) + 1) for c in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(
    st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=8),
    st.lists(st.integers(0), max_size=9),
)
def test_output_is_taken_apart_wherever_it_is_cut(pieces: list[tuple[int, bytes]], cuts: list[int]) -> None:
    stream = b"".join(bytes([number, 0, 0, 0]) + len(data).to_bytes(4, "big") + data for number, data in pieces)
    demultiplexer = Demultiplexer()
    found = {ExecChannel.STDOUT: b"", ExecChannel.STDERR: b""}
    for part in cut(stream, cuts):
        for channel, data in demultiplexer.feed(part):
            found[channel] += data
    assert found[ExecChannel.STDOUT] == b"".join(data for number, data in pieces if number == 1)
    assert found[ExecChannel.STDERR] == b"".join(data for number, data in pieces if number == 2)


def test_what_is_no_output_is_refused() -> None:
    with pytest.raises(ProtocolError):
        list(Demultiplexer().feed(b"HTTP/1.1 200 OK"))


@given(
    st.lists(st.one_of(st.binary(max_size=20), st.sampled_from([NONCE[:5], b"\x1e", NONCE + b"x"])), max_size=6),
    st.sampled_from([b"0;", b"!127;", b"255;"]),
    st.lists(st.integers(0), max_size=9),
)
def test_a_report_is_found_wherever_it_is_cut(parts: list[bytes], report: bytes, cuts: list[int]) -> None:
    output = b"".join(parts)
    finder = ReportFinder(NONCE)
    found, told = b"", None
    for part in cut(output + NONCE + report + b"from a daemon", cuts):
        if told is None:
            data, told = finder.feed(part)
            found += data
    assert found == output
    assert isinstance(told, Report)
    assert (told.failed, told.code) == (report.startswith(b"!"), int(report.strip(b"!;")))


def test_what_was_held_back_is_given_at_the_end() -> None:
    finder = ReportFinder(NONCE)
    assert finder.feed(b"abc" + NONCE[:4]) == (b"abc", None)
    assert finder.rest() == NONCE[:4]


def test_ids_are_steady_and_never_taken() -> None:
    ids = UidRange(first=10, last=12)
    first = allocate("uid", ids, set())
    assert first == allocate("uid", ids, set())
    given_out: set[int] = set()
    for number in range(3):
        given_out.add(allocate(str(number), ids, given_out))
    assert given_out == {10, 11, 12}
    with pytest.raises(LimitExceededError, match="uid_range"):
        allocate("one more", ids, given_out)


@pytest.mark.parametrize(
    ("user", "uid", "gid"),
    [("root", 0, 0), ("0:0", 0, 0), ("ann", 1001, 1002), ("1001", 1001, 1002), ("ann:staff", 1001, 50), ("77", 77, 77)],
)
def test_users_of_the_image(user: str, uid: int, gid: int) -> None:
    found = named_identity(user, PASSWD, GROUP)
    assert (found.uid, found.gid, found.known) == (uid, gid, uid != 77)


@pytest.mark.parametrize("user", ["bob", "ann:nobody", "-1", "99999999999"])
def test_users_the_image_has_not(user: str) -> None:
    with pytest.raises(InvalidOptionError, match="user"):
        named_identity(user, PASSWD, GROUP)


def test_the_account_of_an_unknown_user() -> None:
    data = account_archive(Identity(uid=5, gid=6), PASSWD.rstrip("\n"), "", workspace="/workspace")
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        passwd = tar.extractfile("etc/passwd")
        assert passwd is not None
        assert passwd.read().decode() == PASSWD + "sandbox:x:5:6:sandbox:/home/sandbox:/bin/sh\n"
        assert [(tar.getmember(name).uid, tar.getmember(name).mode) for name in ("home/sandbox", "workspace")] == [
            (5, 0o700),
            (5, 0o755),
        ]
    assert account_archive(Identity(uid=5, gid=6, known=True), PASSWD, "") == b""


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("python", ("python", "latest")),
        ("python:3.12", ("python", "3.12")),
        ("host:5000/a/b", ("host:5000/a/b", "latest")),
        ("host:5000/a:1", ("host:5000/a", "1")),
        ("a@sha256:" + "0" * 64, ("a", "sha256:" + "0" * 64)),
    ],
)
def test_names_of_images(image: str, parts: tuple[str, str]) -> None:
    assert split_reference(check_name(image)) == parts


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("dial tcp: lookup x on 1.1.1.1:53: no such host", RuntimeUnavailableError),
        ('Get "http://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused', RuntimeUnavailableError),
        ("manifest for a:1 not found: manifest unknown: manifest unknown", ImageNotFoundError),
        ("pull access denied for a, repository does not exist or may require 'docker login'", ImageNotFoundError),
        ("invalid reference format: repository name must be lowercase", InvalidOptionError),
    ],
)
def test_why_a_pull_failed(message: str, kind: type[SandboxError]) -> None:
    assert type(pull_error("a:1", message)) is kind


def test_what_the_engine_refuses() -> None:
    assert isinstance(api_error(409, "Container x is not running"), NotRunningError)
    assert isinstance(
        api_error(500, "driver failed: Bind for 0.0.0.0:80 failed: port is already allocated"), ValueError
    )


def test_why_an_exec_did_not_start() -> None:
    assert isinstance(start_error("cannot exec in a stopped state: unknown", "s"), NotRunningError)
    full = "OCI runtime exec failed: unable to start container process: read init-p: connection reset by peer"
    assert isinstance(start_error(full, "s"), LimitExceededError)
    assert isinstance(start_error('exec: "sh": executable file not found in $PATH', "s"), CommandNotFoundError)
    assert isinstance(start_error("something else", "s"), UnavailableError)


def test_the_hosts_gateway_is_read() -> None:
    table = "Iface\tDestination\tGateway\neth0\t0000A8C0\t00000000\neth0\t00000000\t0100A8C0\t0003\n"
    assert lan_gateway(table) == "192.168.0.1"
    assert lan_gateway("") == ""


def test_an_environment_for_sh_is_quoted() -> None:
    assert environment_script({"A": "it's $x"}) == b"export A='it'\\''s $x'\n"
