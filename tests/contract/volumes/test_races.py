"""Directories that are swapped while they are used."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import pytest

from tests.contract.conftest import DIRECT
from tests.contract.workspaces import SECRET, names, read, swapping, write
from yaosb_jupyter.errors import NotFoundError, PathError, SandboxError
from yaosb_jupyter.tai.volumes.base import Volume

# What an engine's archive does is done within the container.
pytestmark = pytest.mark.parametrize("rig", [*DIRECT, "daemon"], indirect=True)


async def test_x11_a_directory_swapped_meanwhile_leads_nowhere(
    volume: Volume, hostile: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "file").write_bytes(SECRET)
    (outside / "sub").mkdir()
    (hostile / "dir/sub").mkdir(parents=True)
    (hostile / "dir/file").write_bytes(b"inside")
    refused = done = 0
    with swapping(hostile / "dir", outside):
        for number in range(400):
            for call in (
                lambda: read(volume, "dir/file"),
                lambda: write(volume, "dir/file", b"inside"),
                lambda number=number: write(volume, f"dir/sub/{number}", b"inside"),
                lambda number=number: volume.mkdir(f"dir/made/{number}"),
                lambda number=number: volume.rename("dir/file", "dir/file"),
                lambda number=number: volume.remove(f"dir/sub/{number}"),
                lambda: volume.list("dir"),
            ):
                try:
                    found = await call()
                except (PathError, NotFoundError):
                    refused += 1
                else:
                    done += 1
                    assert found != SECRET
    assert done, "the attacker won every race: nothing was tried"
    assert refused, "the attacker lost every race: nothing was tried"
    assert names(outside) == ["file", "sub"]
    assert names(outside / "sub") == []
    assert (outside / "file").read_bytes() == SECRET


async def test_x11_a_tree_swapped_while_it_is_removed_spares_the_outside(
    volume: Volume, hostile: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    kept = [outside / f"kept-{number}" for number in range(20)]
    for path in kept:
        path.write_bytes(SECRET)
    for number in range(60):
        victim = hostile / "tree/victim"
        victim.mkdir(parents=True, exist_ok=True)
        for name in range(10):
            (victim / str(name)).write_bytes(b"x")
        stop = threading.Event()

        def swap(victim: Path = victim, stop: threading.Event = stop) -> None:
            while not stop.is_set():
                with suppress(OSError):
                    victim.rename(victim.with_name("aside"))
                    victim.symlink_to(outside)
                    victim.unlink()
                    victim.with_name("aside").rename(victim)

        attacker = threading.Thread(target=swap)
        attacker.start()
        try:
            with suppress(SandboxError):
                await volume.remove("tree", recursive=True)
        finally:
            stop.set()
            attacker.join()
        assert all(path.exists() for path in kept), f"round {number}"
