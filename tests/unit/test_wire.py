"""What crosses a connection comes out as it went in."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from yaosb_jupyter import errors
from yaosb_jupyter.choices import ExecChannel, Lifecycle, Network, Status
from yaosb_jupyter.errors import InvalidOptionError, ProtocolError, SandboxError
from yaosb_jupyter.options import CreateOptions, ExecOptions, PortMapping
from yaosb_jupyter.types import (
    ExecResult,
    FileInfo,
    Isolation,
    ListFilter,
    LogChunk,
    PoolInfo,
    PoolLimits,
    PoolSpec,
    SandboxInfo,
)
from yaosb_jupyter.wire.codec import from_json, to_json
from yaosb_jupyter.wire.errors import CODES, error_from_json, error_to_json

NOW = datetime(2024, 5, 17, 10, 30, 0, 123456, tzinfo=UTC)
ISOLATION = Isolation(**{name: f"about {name}" for name in Isolation.__dataclass_fields__})
OPTIONS = CreateOptions.of(
    "lab",
    owner="ann@example.org",
    labels={"team": "blue"},
    env={"A": "ä\n"},
    memory="1g",
    cpus=0.5,
    ports=["9000:80/udp"],
    network="none",
    lifecycle="one-shot",
    idle_timeout=0.25,
    cmd=["sleep", "1"],
)
INFO = SandboxInfo(
    uid="01J",
    id="lab",
    runtime_id="r",
    pool="default",
    owner="ann",
    chat="",
    image="i",
    status=Status.RUNNING,
    status_reason="",
    reachable=True,
    lifecycle=Lifecycle.SESSION,
    labels={"a": "b"},
    ip="",
    created_at=NOW,
    last_active=NOW,
    process_count=3,
    idle_timeout=1.5,
    max_lifetime=0,
    expires_at=None,
    vnc=False,
    ports=(PortMapping(container_port=80),),
    link="",
    isolation=ISOLATION,
    warnings=("one",),
)
POOL = PoolInfo(
    name="p",
    address="a",
    runtime="docker",
    is_local=True,
    connected=False,
    error="no",
    running=1,
    total=2,
    limits=PoolLimits(max_total=3),
    isolation=None,
)


@pytest.mark.parametrize(
    "value",
    [
        OPTIONS,
        CreateOptions(),
        INFO,
        replace(INFO, expires_at=NOW, isolation=None),
        POOL,
        PoolSpec(name="p", network=Network.ALLOWLIST, options={"a": "b"}),
        ExecOptions(argv=("echo", "ü", ""), env={"A": "1"}, timeout=0.5, stdin=True),
        ListFilter(status=Status.FAILED, labels={"x": "y"}),
        FileInfo(name="f", path="d/f", size=2**40, mode=0o644, mtime=1.5, is_dir=False, link_target="g"),
        LogChunk(channel=ExecChannel.STDERR, data=b"\xff\0"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_comes_out_as_it_went_in(value: Any) -> None:
    assert from_json(type(value), json.loads(json.dumps(to_json(value)))) == value


def test_fields_of_a_newer_side_are_dropped() -> None:
    assert from_json(ListFilter, {"owner": "ann", "colour": "red"}) == ListFilter(owner="ann")


def test_what_the_type_refuses_names_the_field() -> None:
    with pytest.raises(InvalidOptionError, match="cpus=-1") as caught:
        from_json(CreateOptions, {"cpus": -1.0})
    assert caught.value.hint


@pytest.mark.parametrize("value", [{"cpus": "many"}, {"labels": [1]}, [], None, 7])
def test_what_is_no_such_value_breaks_the_protocol(value: Any) -> None:
    with pytest.raises(ProtocolError, match="CreateOptions"):
        from_json(CreateOptions, value)


def test_every_error_has_a_code() -> None:
    def family(kind: type[SandboxError]) -> set[type[SandboxError]]:
        return {kind}.union(*(family(child) for child in kind.__subclasses__() if child.__module__ == kind.__module__))

    public = {kind.__name__: kind for kind in family(SandboxError) if not kind.__name__.startswith("_")}
    assert public == CODES
    assert len(CODES) > 20


@pytest.mark.parametrize("code", sorted(CODES))
def test_an_error_comes_out_as_it_went_in(code: str) -> None:
    error = CODES[code]("it broke")
    error.sandbox, error.hint = "lab", "mend it"
    error.pool = "default"
    if hasattr(error, "exit_code"):
        error.exit_code = 126
    if hasattr(error, "result"):
        error.result = ExecResult(exit_code=3, stdout="aus", stderr="ü", signal=9, duration=1.5, truncated=True)
    told = error_from_json(json.loads(json.dumps(error_to_json(error))))
    assert type(told) is type(error)
    assert vars(told) == vars(error)
    assert str(told) == str(error)


def test_a_result_in_bytes_stays_bytes() -> None:
    error = errors.ExecFailedError("no", result=ExecResult(exit_code=1, stdout=b"\xff\0", stderr=b""))
    told = error_from_json(json.loads(json.dumps(error_to_json(error))))
    assert isinstance(told, errors.ExecFailedError)
    assert told.result == error.result


def test_an_error_class_of_somebody_else_is_told_as_the_nearest_of_ours() -> None:
    class TooManyError(errors.LimitExceededError):
        pass

    assert type(error_from_json(error_to_json(TooManyError("many")))) is errors.LimitExceededError


@pytest.mark.parametrize("message", [{}, {"code": "NewError"}, {"code": 7, "message": 3, "hint": [], "result": 1}])
def test_an_error_of_a_newer_or_broken_side_is_an_error_still(message: dict[str, Any]) -> None:
    assert type(error_from_json(message)) is SandboxError
