"""Which engine an address means."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from yaosb_jupyter.errors import InvalidOptionError, NotAvailableError
from yaosb_jupyter.tai.runtimes.docker.address import EngineAddress, TlsFiles, resolve
from yaosb_jupyter.tai.runtimes.docker.options import DockerOptions, UidRange


def found(address: str, home: Path, *, environ: dict[str, str] | None = None, **options: str) -> EngineAddress:
    return resolve(address, DockerOptions.parse(options), environ=environ or {}, home=home)


def write_context(home: Path, name: str, host: str, *, tls: bool = False) -> None:
    digest = hashlib.sha256(name.encode()).hexdigest()
    meta = home / ".docker/contexts/meta" / digest / "meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps({"Name": name, "Endpoints": {"docker": {"Host": host}}}))
    if tls:
        directory = home / ".docker/contexts/tls" / digest / "docker"
        directory.mkdir(parents=True)
        for file in ("ca.pem", "cert.pem", "key.pem"):
            (directory / file).write_text("")


@pytest.mark.parametrize("address", ["", "local", "localhost", "127.0.0.1", "::1"])
def test_local_is_the_platforms_socket(address: str, tmp_path: Path) -> None:
    assert found(address, tmp_path).path.endswith("docker.sock")


def test_local_heeds_docker_host(tmp_path: Path) -> None:
    address = found("local", tmp_path, environ={"DOCKER_HOST": "tcp://far:99"})
    assert (address.host, address.port, address.tls, address.is_local) == ("far", 99, None, False)
    assert "DOCKER_HOST" in str(address)


def test_docker_host_comes_before_contexts(tmp_path: Path) -> None:
    write_context(tmp_path, "work", "tcp://work:1")
    environ = {"DOCKER_HOST": "unix:///x.sock", "DOCKER_CONTEXT": "work"}
    assert found("local", tmp_path, environ=environ).path == "/x.sock"


def test_the_current_context_is_used(tmp_path: Path) -> None:
    write_context(tmp_path, "work", "unix:///work.sock")
    (tmp_path / ".docker/config.json").write_text(json.dumps({"currentContext": "work"}))
    assert found("local", tmp_path).path == "/work.sock"


def test_a_context_brings_its_certificates(tmp_path: Path) -> None:
    write_context(tmp_path, "work", "tcp://work", tls=True)
    for address in (
        found("context://work", tmp_path),
        found("local", tmp_path, context="work"),
        found("local", tmp_path, environ={"DOCKER_CONTEXT": "work"}),
    ):
        assert (address.host, address.port) == ("work", 2376)
        assert address.tls is not None
        assert address.tls.key.endswith("key.pem")


@pytest.mark.parametrize(("address", "context"), [("context://default", ""), ("local", "default")])
def test_the_default_context_is_there_without_files(address: str, context: str, tmp_path: Path) -> None:
    assert found(address, tmp_path, context=context) == found("local", tmp_path)
    environ = {"DOCKER_HOST": "tcp://far:1", "DOCKER_CONTEXT": "work"}
    assert found(address, tmp_path, environ=environ, context=context).host == "far"


def test_an_unknown_context_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotAvailableError, match="'nowhere'"):
        found("context://nowhere", tmp_path)


def test_tls_by_options_and_by_environment(tmp_path: Path) -> None:
    by_options = found("tcp://far", tmp_path, tls_ca="/a", tls_cert="/b", tls_key="/c")
    assert by_options.tls == TlsFiles(ca="/a", cert="/b", key="/c")
    by_environment = found("tcp://far:1", tmp_path, environ={"DOCKER_CERT_PATH": "/certs", "DOCKER_TLS_VERIFY": "1"})
    assert by_environment.tls == TlsFiles(ca="/certs/ca.pem", cert="/certs/cert.pem", key="/certs/key.pem")
    assert found("tcp://far", tmp_path).port == 2375


@pytest.mark.parametrize(
    "address", ["unix://relative", "tcp://", "tcp://h:port", "tcp://h:1/path", "ssh://me@far", "npipe://x", "nonsense"]
)
def test_other_addresses_are_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="accepted"):
        found(address, tmp_path)


def test_an_ipv6_host_keeps_its_brackets(tmp_path: Path) -> None:
    assert found("tcp://[::1]:5", tmp_path).url == "tcp://[::1]:5"


@pytest.mark.parametrize(
    "options", [{"tls": "x"}, {"uid_range": "5-1"}, {"uid_range": "a"}, {"uid_range": "0-5"}, {"shared_files": "maybe"}]
)
def test_bad_options_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError, match=next(iter(options))):
        DockerOptions.parse(options)


def test_options_are_read() -> None:
    options = DockerOptions.parse({"uid_range": "300-400", "shared_files": "No"})
    assert options.uid_range == UidRange(first=300, last=400)
    assert options.shared_files is False
