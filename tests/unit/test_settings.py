import os
from pathlib import Path
from typing import Any

import pytest

from yaosb_jupyter.choices import Network
from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.settings import Settings, load_settings
from yaosb_jupyter.types import PoolLimits, PoolSpec, PoolTimeouts

ENVIRON = {
    "YAO_DATA_DIR": "/var/lib/yaosb",
    "YAO_TAI_ADDR": "tai://host",
    "YAO_TAI_RUNTIME": "k8s",
    "YAO_TAI_KUBECONFIG": "/etc/kube",
    "YAO_TAI_NAMESPACE": "sandboxes",
    "YAO_GRPC_LISTEN": "127.0.0.1:9099",
    "YAO_GRPC_ALLOW": "10.0.0.0/8, 127.0.0.1/32",
    "YAO_SANDBOX_IMAGE": "python:3.12",
    "YAO_SANDBOX_MAX": "7",
    "YAO_SANDBOX_IDLE_TIMEOUT": "1h30m",
    "YAO_SANDBOX_MEMORY": "512m",
    "YAO_SANDBOX_CPU": "0.5",
}


def load(environ: dict[str, str] | None = None, file: Path | str = os.devnull, **overrides: Any) -> Settings:
    return load_settings(environ=environ or {}, file=file, **overrides)


def test_defaults() -> None:
    settings = load()
    assert settings.max_sandboxes == 100
    assert settings.idle_timeout == 1800
    assert settings.memory == 2 * 2**30
    assert settings.cpus == 1.0
    assert settings.tai_namespace == "default"
    assert settings.owner
    assert settings.all_pools() == (PoolSpec(name="default", address=""),)
    # A socket's path ends at 107 bytes.
    assert len(os.fsencode(settings.runtime_dir)) < 70


def test_each_data_directory_has_its_own_runtime_directory() -> None:
    assert load(data_dir="/a").runtime_dir != load(data_dir="/b").runtime_dir


def test_the_environment() -> None:
    settings = load(ENVIRON)
    assert settings.data_dir == Path("/var/lib/yaosb")
    assert settings.grpc_allow == ("10.0.0.0/8", "127.0.0.1/32")
    assert (settings.max_sandboxes, settings.idle_timeout, settings.memory, settings.cpus) == (
        7,
        5400,
        512 * 2**20,
        0.5,
    )
    (pool,) = settings.all_pools()
    assert pool.name == "default"
    assert pool.address == "tai://host"
    assert pool.options == {"runtime": "k8s", "kubeconfig": "/etc/kube", "namespace": "sandboxes"}


YAML = """
max_sandboxes: 9
idle_timeout: 45m
pools:
  - name: near
    address: local
    limits: {max_total: 5, max_per_user: 2}
    timeouts: {idle_timeout: 10m}
    memory: 1g
    cpus: 2
    network: none
    options: {tls: "yes"}
  - name: far
    address: tcp://host:2376
"""


def test_later_sources_win(tmp_path: Path) -> None:
    file = tmp_path / "yaosb.yaml"
    file.write_text(YAML)
    settings = load(ENVIRON, file, idle_timeout=60)
    assert settings.image == "python:3.12"  # only the environment names it
    assert settings.max_sandboxes == 9  # the file is later
    assert settings.idle_timeout == 60  # arguments are last
    near, far = settings.all_pools()
    assert near == PoolSpec(
        name="near",
        address="local",
        limits=PoolLimits(max_total=5, max_per_user=2),
        timeouts=PoolTimeouts(idle_timeout=600),
        memory=2**30,
        cpus=2.0,
        network=Network.NONE,
        options={"tls": "yes"},
    )
    assert far.address == "tcp://host:2376"


def test_the_file_named_by_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("max_sandboxes: 3")
    assert load_settings(environ={"YAO_CONFIG": str(file)}).max_sandboxes == 3
    with pytest.raises(InvalidOptionError, match=r"missing\.yaml does not exist"):
        load_settings(environ={"YAO_CONFIG": str(tmp_path / "missing.yaml")})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("YAO_SANDBOX_MAX", "many"),
        ("YAO_SANDBOX_MAX", "-1"),
        ("YAO_SANDBOX_IDLE_TIMEOUT", "-5m"),
        ("YAO_SANDBOX_MEMORY", "lots"),
        ("YAO_SANDBOX_CPU", "0"),
        ("YAO_TAI_RUNTIME", "podman"),
    ],
)
def test_an_error_names_the_variable(name: str, value: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"{name}=.*accepted"):
        load({name: value})


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("max_sandbox: 3", "max_sandbox"),
        ("pools: near", "pools="),
        ("pools: [{name: a, memory: lots}]", r"pools\[0\]\.memory"),
        ("pools: [{name: a}, {name: b, limits: {total: 1}}]", r"pools\[1\]\.limits\.total"),
        ("pools: [{name: a, colour: red}]", r"pools\[0\]\.colour"),
        ("pools: [{name: a}, {name: a}]", "'a' is given twice"),
        ("pools: [{name: a/b}]", "a/b"),
        ("- a list", "not a mapping"),
        ("a: [", "cannot be read"),
    ],
)
def test_an_error_names_the_field(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "yaosb.yaml"
    file.write_text(text)
    with pytest.raises(InvalidOptionError, match=named):
        load(file=file)


def test_a_setting_of_the_wrong_name() -> None:
    with pytest.raises(InvalidOptionError, match="datadir"):
        load(datadir="/x")
