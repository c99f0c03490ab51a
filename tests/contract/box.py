"""An environment in the hands of a test."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.errors import NotFoundError
from yaosb_jupyter.options import ExecOptions
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec, ExecStream, Runtime
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.types import ExitStatus

_SEEN = """
import json, os
mark = os.environ["SEEN_MARK"].encode()
found = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            line = file.read()
        with open(f"/proc/{pid}/stat", "rb") as file:
            state = file.read().rpartition(b")")[2].split()[0]
    except OSError:
        continue
    if mark in line and state not in (b"Z", b"X"):
        found.append(int(pid))
print(json.dumps(found))
"""


_LEAVE = """
for number in "$@"; do
    setsid sleep "$number" >/dev/null 2>&1 &
    until [ "$(tr '\\0' ' ' < /proc/$!/cmdline)" = "sleep $number " ]; do sleep 0.01; done
done
"""


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A command's end and output."""

    status: ExitStatus
    stdout: bytes
    stderr: bytes

    @property
    def code(self) -> int:
        return self.status.exit_code


@dataclass(frozen=True, kw_only=True)
class Box:
    """One environment of a runtime."""

    runtime: Runtime
    runtime_id: str
    spec: EnvironmentSpec

    async def start(self) -> Box:
        await self.runtime.start(self.runtime_id)
        return self

    async def stop(self, timeout: float = 2.0) -> None:
        await self.runtime.stop(self.runtime_id, timeout)

    async def stream(self, *argv: str, **options: Any) -> ExecStream:
        return await self.runtime.exec_stream(self.runtime_id, ExecOptions(argv=argv, **options))

    async def run(self, *argv: str, stdin: bytes | None = None, **options: Any) -> Ran:
        """Runs a command to its end."""
        stream = await self.stream(*argv, stdin=stdin is not None, **options)
        async with aclosing(stream):
            feeding = asyncio.ensure_future(_feed(stream, stdin or b"")) if stdin is not None else None
            ran = await collect(stream)
            if feeding is not None:
                await feeding
            return ran

    async def sh(self, script: str, **options: Any) -> Ran:
        return await self.run("sh", "-c", script, **options)

    async def python(self, code: str, *args: str, **options: Any) -> Ran:
        return await self.run("python3", "-c", code, *args, **options)

    async def leave(self, *marks: str) -> None:
        """Leaves a sleeping daemon behind for each mark, and returns when it sleeps."""
        ran = await self.run("sh", "-c", _LEAVE, "sh", *marks, timeout=20)
        assert ran.code == 0, ran

    async def pids_of(self, mark: str) -> Sequence[int]:
        """The living processes inside whose arguments hold a mark."""
        ran = await self.python(_SEEN, env={"SEEN_MARK": mark})
        assert ran.code == 0, ran.stderr
        return json.loads(ran.stdout)  # type: ignore[no-any-return]

    @property
    def volume(self) -> Volume:
        return self.runtime.volume(self.spec, self.runtime_id)

    async def read(self, path: str) -> bytes:
        return b"".join([piece async for piece in self.volume.read(path)])

    async def has(self, path: str) -> bool:
        """Whether a file is there."""
        try:
            await self.volume.stat(path)
        except NotFoundError:
            return False
        return True

    async def write(self, path: str, data: bytes, mode: int | None = None) -> None:
        await self.volume.write(path, pieces(data), mode=mode)


async def _feed(stream: ExecStream, data: bytes) -> None:
    for start in range(0, len(data), 2**16):
        await stream.send(data[start : start + 2**16])
    await stream.close_stdin()


async def collect(stream: ExecStream) -> Ran:
    """All that is left of a stream."""
    output = {ExecChannel.STDOUT: bytearray(), ExecChannel.STDERR: bytearray()}
    while piece := await stream.receive():
        output[piece[0]] += piece[1]
    return Ran(
        status=await stream.wait(),
        stdout=bytes(output[ExecChannel.STDOUT]),
        stderr=bytes(output[ExecChannel.STDERR]),
    )


async def receive_until(stream: ExecStream, wanted: bytes) -> None:
    """Reads stdout until it holds something."""
    seen = b""
    async with asyncio.timeout(20):
        while wanted not in seen:
            piece = await stream.receive()
            assert piece is not None, f"ended without {wanted!r}: {seen!r}"
            seen += piece[1] if piece[0] is ExecChannel.STDOUT else b""


async def pieces(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def eventually(condition: Callable[[], Awaitable[bool]], *, within: float = 10.0, what: str = "") -> None:
    """Waits for a condition that nothing tells us of."""
    try:
        async with asyncio.timeout(within):
            while not await condition():  # noqa: ASYNC110 - it is a fact of the sandbox, which tells no event
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"not within {within} s: {what or condition}") from None


def mark() -> str:
    """Something for a command line that no other process has: also a number of seconds, for `sleep`."""
    return f"100{secrets.randbelow(10**9):09}"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
