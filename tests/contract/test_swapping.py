"""Attackers inside a real sandbox swap directories and links all the time, while its files are used from outside."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import shutil
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.contract.box import Box, pieces
from tests.contract.conftest import MakeBox
from tests.contract.hosts import Host, host_of, hosts
from yaosb_jupyter.errors import NotFoundError, PathError
from yaosb_jupyter.guest import confined
from yaosb_jupyter.tai.volumes.base import Volume

pytestmark = pytest.mark.timeout(180)

PROGRAM = (Path(__file__).parents[1] / "attacks/swapper.py").read_text()
SECRET = b"of the host, or of the container"
SWAPS = 1_200_000
ATTACKERS = 2
SNAPSHOT = """
import os, sys
for top, _, names in os.walk(sys.argv[1]):
    for name in [".", *names]:
        path = os.path.join(top, name)
        status = os.lstat(path)
        print(path, status.st_mode, status.st_ino, status.st_uid, status.st_size, status.st_ctime_ns)
        if name != ".":
            print(open(path, "rb").read())
for place in sys.argv[3:]:
    print(os.path.exists(os.path.join(place, sys.argv[2])))
"""


@pytest.fixture(params=hosts("docker", "docker-relay", "embedded"))
def host(request: pytest.FixtureRequest, directory: Path) -> Iterator[Host]:
    yield from host_of(request.param, directory)


@pytest.fixture
def directory() -> Iterator[Path]:
    """In memory where that can be had: a disk is kept busy by renames."""
    path = Path(tempfile.mkdtemp(prefix="yaosb-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@dataclass
class Outside:
    """A directory that is none of the sandbox's files, where its volume works: on the host, or in the container."""

    box: Box
    path: str
    inside: bool
    canary: str = field(default_factory=lambda: f"canary-{secrets.token_hex(6)}")
    planted: str = field(default_factory=lambda: f"planted-{secrets.token_hex(6)}")

    async def make(self) -> None:
        script = f'mkdir -p "$1/sub" && printf "%s" "{SECRET.decode()}" > "$1/$2" && chmod -R a+rwX "$1"'
        await self._run("sh", "-c", script, "sh", self.path, self.canary)

    async def snapshot(self) -> bytes:
        """Another where anything was changed there, or created around it."""
        around = ("/", "/tmp", *map(str, Path(self.path).parents))
        return await self._run("python3", "-c", SNAPSHOT, self.path, self.planted, *around)

    async def _run(self, *argv: str) -> bytes:
        if self.inside:
            ran = await self.box.run(*argv)
            assert ran.code == 0, ran
            return ran.stdout
        process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        assert process.returncode == 0
        return output


@pytest.fixture
async def outside(make_box: MakeBox, host: Host, directory: Path) -> Outside:
    box = await make_box()
    inside = "relay" in type(host).__name__.lower()
    found = Outside(box=box, path="/tmp/outside" if inside else str(directory / "outside"), inside=inside)
    await found.make()
    return found


@dataclass
class Use:
    """The files of a sandbox, used in every way there is while they are attacked."""

    volume: Volume
    outside: Outside
    here: Path
    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    escaped: list[str] = field(default_factory=list)

    async def until(self, attack: asyncio.Future[Any], *, reading_only: bool) -> None:
        """Until the attack is over."""
        number = 0
        calls = [*self._reading(), *(() if reading_only else self._copying_and_changing())]
        while not attack.done():
            number += 1
            name, call = random.choice(calls)
            place = f"t{random.randrange(ATTACKERS)}"
            try:
                async with asyncio.timeout(30):
                    found = await call(place, number)
            except (PathError, NotFoundError):
                self.refused[name] += 1
            else:
                self.done[name] += 1
                await asyncio.to_thread(self._check, name, found)

    def _check(self, name: str, found: Any) -> None:
        """Looks for what should not have been seen."""
        if name.startswith("forbidden"):
            self.escaped.append(name)
        if isinstance(found, bytes) and SECRET in found:
            self.escaped.append(name)
        if isinstance(found, list | tuple) and any(info.name == self.outside.canary for info in found):
            self.escaped.append(name)
        for path in self.here.glob("out-*"):
            if any(each.read_bytes() == SECRET for each in (path, *path.rglob("*")) if each.is_file()):
                self.escaped.append(name)
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _reading(self) -> list[tuple[str, Callable[[str, int], Awaitable[Any]]]]:
        volume, canary = self.volume, self.outside.canary
        return [
            ("read", lambda place, _: read(volume, f"{place}/dir/file")),
            ("read deep", lambda place, _: read(volume, f"{place}/dir/sub/file")),
            ("read a file", lambda place, _: read(volume, f"{place}/file")),
            ("list", lambda place, _: volume.list(f"{place}/dir")),
            ("list deep", lambda place, _: volume.list(f"{place}/dir/sub")),
            ("stat", lambda place, _: volume.stat(f"{place}/dir/sub")),
            ("forbidden read", lambda place, _: read(volume, f"{place}/dir/{canary}")),
            ("forbidden stat", lambda place, _: volume.stat(f"{place}/dir/{canary}")),
        ]

    def _copying_and_changing(self) -> list[tuple[str, Callable[[str, int], Awaitable[Any]]]]:
        volume, here, planted, canary = self.volume, self.here, self.outside.planted, self.outside.canary
        return [
            ("write", lambda place, _: volume.write(f"{place}/dir/file", pieces(b"inside"))),
            ("write deep", lambda place, _: volume.write(f"{place}/dir/sub/{planted}", pieces(b"planted"))),
            ("write a file", lambda place, _: volume.write(f"{place}/file", pieces(b"inside"))),
            ("plant", lambda place, _: volume.write(f"{place}/dir/{planted}", pieces(b"planted"))),
            ("plant deep", lambda place, n: volume.write(f"{place}/dir/{planted}/{n}/x", pieces(b"planted"))),
            ("mkdir", lambda place, _: volume.mkdir(f"{place}/dir/sub/{planted}/made")),
            ("rename", lambda place, _: volume.rename(f"{place}/dir/{planted}", f"{place}/dir/sub/{planted}")),
            ("remove", lambda place, _: volume.remove(f"{place}/dir/{planted}", recursive=True)),
            ("remove deep", lambda place, _: volume.remove(f"{place}/dir/sub", recursive=True)),
            ("remove all", lambda place, _: volume.remove(f"{place}/dir", recursive=True)),
            ("push", lambda place, _: volume.push(here / "tree", f"{place}/dir")),
            ("push new", lambda place, _: volume.push(here / "tree", f"{place}/dir/{planted}")),
            ("push checked", lambda place, _: volume.push(here / "tree", f"{place}/dir/sub", checksum=True)),
            ("pull", lambda place, n: volume.pull(f"{place}/dir", here / f"out-{n}")),
            ("pull deep", lambda place, n: volume.pull(f"{place}/dir/sub", here / f"out-{n}")),
            ("pull all", lambda place, n: volume.pull(place, here / f"out-{n}")),
            ("pull a file", lambda place, n: volume.pull(f"{place}/file", here / f"out-{n}")),
            ("forbidden pull", lambda place, n: volume.pull(f"{place}/dir/{canary}", here / f"out-{n}")),
            ("forbidden remove", lambda place, _: volume.remove(f"{place}/dir/sub/{canary}")),
            ("forbidden rename", lambda place, n: volume.rename(f"{place}/dir/{canary}", f"stolen-{n}")),
        ]


async def read(volume: Volume, path: str) -> bytes:
    return b"".join([piece async for piece in volume.read(path)])


async def attacked(outside: Outside, here: Path, swaps: int, *, reading_only: bool = False) -> tuple[Use, int]:
    """What became of the files' use, and how often they were swapped meanwhile."""
    box = outside.box
    await asyncio.to_thread(lay_out, here)
    use = Use(box.volume, outside, here)

    async def attack(number: int) -> list[int]:
        arguments = (f"t{number}", str(swaps // ATTACKERS), outside.path, outside.canary)
        ran = await box.run("python3", "-c", PROGRAM, *arguments)
        assert ran.code == 0, ran.stderr
        return [int(word) for word in ran.stdout.split()]

    attack_all = asyncio.gather(*(attack(number) for number in range(ATTACKERS)))
    try:
        await use.until(attack_all, reading_only=reading_only)
        return use, sum(swapped for swapped, _ in await attack_all)
    finally:
        attack_all.cancel()


def lay_out(here: Path) -> None:
    (here / "tree/sub").mkdir(parents=True)
    for path in ("tree/file", "tree/sub/file", "tree/other"):
        (here / path).write_bytes(b"pushed")


async def test_x11_no_swap_of_millions_leads_out(outside: Outside, tmp_path: Path) -> None:
    await hold(outside, tmp_path, SWAPS)


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_x11_no_swap_of_many_millions_leads_out(outside: Outside, tmp_path: Path) -> None:
    await hold(outside, tmp_path, 10 * SWAPS)


async def hold(outside: Outside, here: Path, swaps: int) -> None:
    before = await outside.snapshot()
    use, swapped = await attacked(outside, here, swaps)
    done, refused = use.done.total(), use.refused.total()
    print(f"{swapped} swaps; {done} calls done, {refused} refused, {len(use.escaped)} escapes")
    assert use.escaped == []
    assert await outside.snapshot() == before
    assert swapped >= swaps
    tried = {name for name in use.done | use.refused if not name.startswith("forbidden")}
    assert {name for name in tried if not use.done[name]} == set(), "the attacker won every race"
    assert refused > 100, "the attacker lost every race: nothing was tried"


@pytest.mark.parametrize("host", hosts("docker", "embedded"), indirect=True)
async def test_the_same_attack_on_plain_paths_succeeds(
    outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the attack is one. Nothing is written or copied, for that would be anywhere on this machine."""

    def follow(root: int, names: Any, flags: int, mounts: Any = ()) -> int:
        return os.open("/".join(names) or ".", flags, dir_fd=root)

    monkeypatch.setattr(confined, "open_beneath", follow)
    use, _ = await attacked(outside, tmp_path, SWAPS // 3, reading_only=True)
    assert use.escaped
