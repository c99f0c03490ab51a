"""A guest that runs on this host as it is, and the link to it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.link.blob import install_blob
from yaosb_jupyter.link.door import SocketDoor
from yaosb_jupyter.link.exec import GuestExecStream
from yaosb_jupyter.link.guest import GuestLink, new_key
from yaosb_jupyter.options import ExecOptions
from yaosb_jupyter.types import ExitStatus

MINORS = range(8, 16)


def other_pythons() -> list[str]:
    """The oldest and the newest Python that can be had: of `YAOSB_TEST_PYTHONS` (paths by colons), or looked for."""
    named = os.environ.get("YAOSB_TEST_PYTHONS")
    found = named.split(":") if named else list(_looked_for().values())
    return [found[0], *found[-1:]] if len(found) > 1 else found


def _looked_for() -> dict[int, str]:
    found: dict[int, str] = {}
    for minor in MINORS:
        versions = sorted(Path("~/.pyenv/versions").expanduser().glob(f"3.{minor}.*/bin/python3"))
        on_path = shutil.which(f"python3.{minor}")
        if versions or on_path:
            found[minor] = str(versions[-1]) if versions else str(on_path)
    return found


@dataclass
class Guest:
    """A running guest. ``killed`` counts how often the host had to end it from outside."""

    process: asyncio.subprocess.Process
    link: GuestLink
    directory: Path
    key: str
    killed: int = field(default=0)

    async def exec(self, *argv: str, **options: Any) -> GuestExecStream:
        async def kill() -> None:
            self.killed += 1
            self.process.kill()

        env: Mapping[str, str] = options.pop("env", {})
        return await self.link.commands.exec(ExecOptions(argv=argv, **options), cwd="", env=env, kill=kill)

    async def run(self, *argv: str, **options: Any) -> tuple[ExitStatus, bytes, bytes]:
        stream = await self.exec(*argv, **options)
        output = dict.fromkeys(ExecChannel, b"")
        while (piece := await stream.receive()) is not None:
            output[piece[0]] += piece[1]
        return await stream.wait(), output[ExecChannel.STDOUT], output[ExecChannel.STDERR]

    async def relink(self) -> GuestLink:
        """As a daemon that was started anew has it."""
        await self.link.close()
        self.link = new_link(self.directory, self.key)
        await self.link.listen()
        return self.link


def new_link(directory: Path, key: str) -> GuestLink:
    return GuestLink(SocketDoor(directory / "link.sock", sandbox="s"), key, sandbox="s")


@asynccontextmanager
async def guest(
    directory: Path,
    python: str = sys.executable,
    *,
    temporary: str = "/tmp",
    install: Callable[[Path], Path] = install_blob,
    **config: Any,
) -> AsyncIterator[Guest]:
    key = new_key()
    link = new_link(directory, key)
    await link.listen()
    process = await launch(directory, key, python, temporary=temporary, install=install, **config)
    found = Guest(process=process, link=link, directory=directory, key=key)
    try:
        yield found
    finally:
        await end(process)
        await found.link.close()


async def launch(
    directory: Path,
    key: str,
    python: str = sys.executable,
    *,
    temporary: str = "/tmp",
    install: Callable[[Path], Path] = install_blob,
    **config: Any,
) -> asyncio.subprocess.Process:
    blob = await asyncio.to_thread(install, directory)
    process = await asyncio.create_subprocess_exec(
        *(python, "-I", "-S", str(blob)),
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HOME": str(directory), "TMPDIR": temporary},
        start_new_session=True,
    )
    assert process.stdin is not None
    line = {"socket": str(directory / "link.sock"), "key": key, "workdir": str(directory), **config}
    process.stdin.write(json.dumps(line).encode() + b"\n")
    process.stdin.close()
    return process


async def end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.communicate()
