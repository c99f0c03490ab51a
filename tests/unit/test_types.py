import pickle
from typing import Any

import msgspec
import pytest

from yaosb_jupyter.checks import RESERVED_LABELS, check_id
from yaosb_jupyter.choices import Lifecycle
from yaosb_jupyter.errors import CommandNotFoundError, InvalidOptionError, SandboxError
from yaosb_jupyter.options import CreateOptions, ExecOptions, PortMapping


@pytest.mark.parametrize("value", ["oneshot", "one-shot", "ONE_SHOT", "longrunning"])
def test_lifecycles_as_people_write_them(value: str) -> None:
    assert Lifecycle.of(value, "lifecycle") in (Lifecycle.ONE_SHOT, Lifecycle.LONG_RUNNING)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"lifecycle": "forever"}, "lifecycle='forever'.*one-shot, session"),
        ({"memory": "4m"}, "memory=4194304 is too small.*16m"),
        ({"cpus": 0}, "cpus="),
        ({"pids": 0}, "pids="),
        ({"workdir": "relative"}, "workdir="),
        ({"idle_timeout": "-1s"}, "idle_timeout="),
        ({"ports": ["x"]}, "ports: 'x'"),
        ({"ports": [70000]}, "ports: .*70000"),
        ({"network": "host"}, "network='host'.*none, bridge"),
        ({"labels": {"managed-by": "me"}}, "'managed-by' is reserved"),
        ({"labels": {"": "x"}}, "labels"),
        ({"env": {"A B": "x"}}, "env: 'A B'"),
        ({"env": {"A": "x\0"}}, "env"),
        ({"env": {"A": "\ud800"}}, "env"),
        ({"id": 5}, "id=5"),
        ({"id": None}, "id=None"),
        ({"owner": 5}, "owner=5"),
        ({"image": b"x"}, "image=b'x'"),
        ({"user": "a\udc80"}, "user="),
        ({"memory": 1.5}, "memory=1.5"),
        ({"memory": "9" * 400}, "memory="),
        ({"memory": 2**70}, "memory="),
        ({"cpus": "x"}, "cpus='x'"),
        ({"cpus": True}, "cpus=True"),
        ({"pids": 10**12}, "pids=1000000000000.*1 to 4194304"),
        ({"pids": 1.5}, "pids=1.5"),
        ({"max_lifetime": 10**400}, "max_lifetime="),
        ({"idle_timeout": "1000000d"}, "idle_timeout=.*100 years"),
        ({"idle_timeout": b"1"}, "idle_timeout="),
        ({"labels": ["a"]}, "labels="),
        ({"labels": {5: "x"}}, "labels=5"),
        ({"env": 5}, "env=5"),
        ({"env": {"A": 5}}, "env"),
        ({"cmd": 5}, "cmd=5"),
        ({"cmd": ["echo", 5]}, "cmd=5"),
        ({"ports": 8080}, "ports=8080.*a list"),
        ({"ports": "8080"}, "ports='8080'.*a list"),
        ({"start": "no"}, "start='no'"),
        ({"colour": "red"}, "unknown option 'colour'.*accepted.*image"),
    ],
)
def test_bad_options_are_named(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidOptionError, match=named):
        CreateOptions.of(fields.pop("id", "lab"), **fields)


def test_options_as_people_write_them() -> None:
    options = CreateOptions.of("lab", memory="2g", ports=[8080, "9000:80"], cmd="echo hi", lifecycle="oneshot")
    assert options.memory == 2**31
    assert options.ports == (PortMapping(container_port=8080), PortMapping(container_port=80, host_port=9000))
    assert options.cmd == ("sh", "-c", "echo hi")
    assert CreateOptions.of(cmd="image").cmd == ("image",)
    assert msgspec.convert(msgspec.to_builtins(options), CreateOptions) == options


@pytest.mark.parametrize(
    ("written", "host_ip", "host_port"),
    [
        (8080, "127.0.0.1", 0),
        ("9000:8080", "127.0.0.1", 9000),
        ("0.0.0.0:9000:8080", "0.0.0.0", 9000),
        ("127.0.0.1::8080", "127.0.0.1", 0),
        ("::1:9000:8080", "::1", 9000),
        ("[::1]:9000:8080/tcp", "::1", 9000),
    ],
)
def test_ports_as_people_write_them(written: int | str, host_ip: str, host_port: int) -> None:
    mapping = PortMapping(container_port=8080, host_port=host_port, host_ip=host_ip)
    assert CreateOptions.of("lab", ports=[written]).ports == (mapping,)


NO_ADDRESSES = ("localhost", "evil", "127.0.0", "127.0.0.1x", " 127.0.0.1", "", "[]", "[[::1]]", "22", "fe80::1%lo")


@pytest.mark.parametrize("host", NO_ADDRESSES)
def test_a_host_address_that_an_engine_would_take_for_all_of_them_is_refused(host: str) -> None:
    with pytest.raises(InvalidOptionError, match="ports: host address"):
        CreateOptions.of("lab", ports=[f"{host}:8080:80"])
    with pytest.raises(InvalidOptionError, match="ports: host address"):
        PortMapping(container_port=80, host_ip=host)


@pytest.mark.parametrize("written", ["80/sctp", "65536", "70000:80", "0", "x", "", "1:2:3:", None])
def test_bad_ports(written: Any) -> None:
    with pytest.raises(InvalidOptionError, match="ports"):
        CreateOptions.of("lab", ports=[written])


@pytest.mark.parametrize("fields", [{"host_ip": 5}, {"host_port": "1"}, {"container_port": "1"}])
def test_the_fields_of_a_port_are_checked_too(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError, match="ports"):
        PortMapping(**{"container_port": 80, **fields})


@pytest.mark.parametrize("id", ["../x", "", "-a", ".a", "a..b", "a/b", "a b", "a" * 129, "é"])
def test_bad_ids(id: str) -> None:
    with pytest.raises(InvalidOptionError, match="id="):
        check_id(id)


def test_every_reserved_label_is_refused() -> None:
    for key in RESERVED_LABELS:
        with pytest.raises(InvalidOptionError, match=key):
            CreateOptions(labels={key: "x"})


@pytest.mark.parametrize("argv", [(), ("",), ("a", "b\0c"), ("echo", 5), ("echo", "\ud800")])
def test_bad_commands(argv: tuple[str, ...]) -> None:
    with pytest.raises(InvalidOptionError, match="command"):
        ExecOptions(argv=argv)


def test_errors_survive_pickling_and_say_where_and_what_next() -> None:
    error = CommandNotFoundError("no such command", exit_code=126, sandbox="lab", hint="install it")
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, SandboxError)
    assert (str(again), again.exit_code) == (str(error), 126)  # type: ignore[attr-defined]
    assert str(error) == "sandbox 'lab': no such command (install it)"
