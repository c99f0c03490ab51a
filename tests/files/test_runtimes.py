"""Paths on real runtimes: what a container's root left, links, and the workspace seen by both at once."""

from __future__ import annotations

import pytest

from tests.manager.conftest import OpenManager, Rig, open_manager, rig, way
from tests.manager.rigs import DockerRig
from yaosb_jupyter.errors import PathError

__all__ = ["open_manager", "rig", "way"]


async def test_x13_what_a_containers_root_left_can_be_read_and_removed(open_manager: OpenManager, rig: Rig) -> None:
    manager = await open_manager()
    sandbox = await manager.create(user="root" if isinstance(rig, DockerRig) else "")
    left = "umask 077; mkdir -p a/b; echo x > a/b/f; ln -s f a/b/l; chmod 400 a/b/f; chmod 500 a/b; ln -s /etc out"
    await sandbox.exec(left, check=True)
    top = sandbox.files / "a"
    assert await (top / "b/l").read_text() == "x\n"
    assert [str(path) async for path in top.rglob("*")] == ["a/b", "a/b/f", "a/b/l"]
    await (top / "b/f").write_text("replaced")
    assert (await sandbox.exec("cat a/b/l", check=True)).stdout == "replaced"
    with pytest.raises(PathError):
        await (sandbox.files / "out/passwd").read_bytes()
    for name in ("out", "out/passwd"):
        path = sandbox.files / name
        assert [await path.exists(), await path.is_file(), await path.is_dir()] == [False] * 3
    assert await (sandbox.files / "out").is_symlink()
    await (sandbox.files / "out").unlink()
    await top.rmtree()
    assert [path async for path in sandbox.files.root.iterdir()] == []
    await manager.remove(sandbox.uid)


async def test_x14_a_file_is_written_while_a_command_waits_for_it(open_manager: OpenManager) -> None:
    manager = await open_manager()
    sandbox = await manager.create()
    path = sandbox.files / "in" / "big"
    async with sandbox.stream("until [ -f in/big ]; do sleep 0.02; done; wc -c < in/big") as waiting:
        async with await path.open("wb") as file:
            for _ in range(5):
                await file.write(b"x" * 2**20)
        events = [event async for event in waiting]
    assert getattr(events[0], "data", "").strip() == str(5 * 2**20)  # never a part of it
    await manager.remove(sandbox.uid)
