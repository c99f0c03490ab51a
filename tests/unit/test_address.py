"""Pool addresses, and the runtime that each opens."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from yaosb_jupyter.core.pool import Pool
from yaosb_jupyter.errors import InvalidOptionError, RuntimeUnavailableError
from yaosb_jupyter.tai.address import Address, Kind, parse_address
from yaosb_jupyter.tai.client import open_host
from yaosb_jupyter.types import PoolSpec


@pytest.mark.parametrize(
    ("text", "kind", "rest"),
    [
        ("", Kind.CHOOSE, ""),
        ("  ", Kind.CHOOSE, ""),
        ("embedded", Kind.EMBEDDED, ""),
        ("memory", Kind.MEMORY, ""),
        ("memory://two", Kind.MEMORY, "two"),
        ("unix:///var/run/docker.sock", Kind.DOCKER, "/var/run/docker.sock"),
        ("tcp://10.0.0.7:2376", Kind.DOCKER, "10.0.0.7:2376"),
        ("context://desktop", Kind.DOCKER, "desktop"),
        ("tai://gpu.example:9000", Kind.TAI, "gpu.example:9000"),
        ("k8s://", Kind.KUBERNETES, ""),
        ("k8s://team/notebooks", Kind.KUBERNETES, "team/notebooks"),
    ],
)
def test_an_address_names_its_runtime(text: str, kind: Kind, rest: str) -> None:
    assert parse_address(text) == Address(kind=kind, text=text.strip(), rest=rest)


@pytest.mark.parametrize("text", ["local", "localhost", "127.0.0.1", "::1", "[::1]", " local "])
def test_this_machine_has_many_names(text: str) -> None:
    assert parse_address(text) == Address(kind=Kind.DOCKER, text="local")


@pytest.mark.parametrize(
    "text", ["docker", "http://host", "tcp://", "unix://", "unix://relative", "tai://", "Local", "10.0.0.7", "://x"]
)
def test_a_bad_address_is_refused_and_the_accepted_forms_are_told(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="accepted: ") as caught:
        parse_address(text)
    assert repr(text) in str(caught.value)


async def test_one_name_is_one_memory_engine(tmp_path: Path) -> None:
    hosts = [
        await open_host(PoolSpec(name="p", address=address), runtime_dir=tmp_path)
        for address in ("memory://a", "memory://a", "memory://b", "memory", "memory")
    ]
    engines = [host.runtime.engine for host in hosts]  # type: ignore[attr-defined]
    assert engines[0] is engines[1]
    assert len({id(engine) for engine in engines}) == 4
    assert hosts[0].info.kind == "memory"
    for host in hosts:
        await host.close()


@pytest.mark.parametrize("address", ["tai://host:1", "k8s://"])
async def test_what_is_not_there_yet_says_so_and_names_the_pool(address: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeUnavailableError, match="not yet in this version") as caught:
        await open_host(PoolSpec(name="far", address=address), runtime_dir=tmp_path)
    assert caught.value.pool == "far"


@pytest.mark.embedded
async def test_without_an_engine_the_choice_is_embedded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    host = await open_host(PoolSpec(name="default"), runtime_dir=tmp_path)
    assert (host.address, host.info.kind) == ("embedded", "embedded")
    await host.close()


@pytest.mark.embedded
@pytest.mark.parametrize("answers", [b"", b'{"ApiVersion": "1.41"}'], ids=["nothing", "its version only"])
async def test_an_engine_that_hangs_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: bytes) -> None:
    callers: list[asyncio.StreamWriter] = []

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        callers.append(writer)
        asked = await reader.readuntil(b"\r\n\r\n")
        if b"/version" in asked and answers:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(answers), answers))

    path = tmp_path / "hung.sock"
    server = await asyncio.start_unix_server(hang, path)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    pool = Pool(PoolSpec(name="default"), opener=open_host, runtime_dir=tmp_path)
    await pool.connect()
    assert pool.address == "embedded"
    await pool.close()
    server.close()
    for caller in callers:
        caller.close()
        await caller.wait_closed()


@pytest.mark.docker
async def test_with_an_engine_the_choice_is_the_engine(tmp_path: Path) -> None:
    host = await open_host(PoolSpec(name="default"), runtime_dir=tmp_path)
    assert (host.address, host.info.kind) == ("local", "docker")
    await host.close()


async def test_an_engine_that_was_asked_for_is_not_replaced(tmp_path: Path) -> None:
    spec = PoolSpec(name="mine", address=f"unix://{tmp_path}/no-engine.sock")
    with pytest.raises(RuntimeUnavailableError) as caught:
        await open_host(spec, runtime_dir=tmp_path)
    assert caught.value.pool == "mine"
    assert caught.value.hint


@pytest.mark.parametrize("value", [None, 5, b"local", "a\0b"])
def test_what_is_no_text_is_refused(value: Any) -> None:
    with pytest.raises(InvalidOptionError, match="address="):
        parse_address(value)
