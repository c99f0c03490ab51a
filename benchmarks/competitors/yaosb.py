"""Ours: in the caller's process, through the daemon, through an engine's relay, and without an engine."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from benchmarks.competitors.base import PIECE, Adapter, Drained
from benchmarks.competitors.host import STUBBORN
from benchmarks.harness import NotBuiltError
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.settings import Settings, load_settings
from yaosb_jupyter.types import Exit, Output

T = TypeVar("T")


class InProcess(Adapter):
    """The manager in this process, its loop in a thread, as a program without a daemon uses it."""

    address: ClassVar = "local"
    options: ClassVar[dict[str, str]] = {}
    portal: BlockingPortal
    manager: AsyncManager
    sandbox: AsyncSandbox

    def open(self) -> None:
        with ExitStack() as opened:
            self.portal = opened.enter_context(start_blocking_portal())
            self.manager = opened.enter_context(self.portal.wrap_async_context_manager(self._manager()))
            self.sandbox = self._call(lambda: self.manager.create("bench"))
            opened.callback(self._call, self.sandbox.remove)
            self._check()
            self._opened = opened.pop_all()

    def close(self) -> None:
        self._opened.close()

    @property
    def container(self) -> str:
        return self.sandbox.last_info.runtime_id

    @property
    def link(self) -> str:
        """How commands reach the sandbox."""
        return self.sandbox.last_info.link

    def run(self, argv: Sequence[str]) -> int:
        return self._call(lambda: self.sandbox.exec(argv)).exit_code

    def run_many(self, argv: Sequence[str], count: int) -> Sequence[int]:
        async def all_at_once() -> Sequence[int]:
            results = await asyncio.gather(*(self.sandbox.exec(argv) for _ in range(count)))
            return [result.exit_code for result in results]

        return self._call(all_at_once)

    def first_output(self, argv: Sequence[str]) -> float:
        async def first() -> float:
            arrived = 0.0
            async for event in self.sandbox.stream(argv):
                if not arrived and isinstance(event, Output):
                    arrived = time.perf_counter()
            return arrived

        started = time.perf_counter()
        return self._call(first) - started

    def drain(self, argv: Sequence[str], *, text: bool) -> Drained:
        async def drain() -> Drained:
            size = 0
            async for event in self.sandbox.stream(argv, encoding="utf-8" if text else None):
                if isinstance(event, Exit):
                    return Drained(size=size, exit_code=event.status.exit_code)
                size += len(event.data)
            raise AssertionError("a stream ends with an Exit event")

        return self._call(drain)

    def put_file(self, source: Path, target: str) -> None:
        self._call(lambda: self.sandbox.files.write(target, _pieces(source)))

    def get_file(self, source: str, target: Path) -> None:
        async def get() -> None:
            with target.open("wb") as file:
                async for piece in self.sandbox.files.stream(source):
                    await asyncio.to_thread(file.write, piece)

        self._call(get)

    def put_tree(self, source: Path, target: str) -> None:
        upload = self._tree_call("upload")
        self._call(lambda: upload(source, target))

    def get_tree(self, source: str, target: Path) -> None:
        download = self._tree_call("download")
        self._call(lambda: download(source, target))

    def removal(self, *, stubborn: bool) -> float:
        fields: Any = {"cmd": ["sh", "-c", STUBBORN]} if stubborn else {}
        sandbox = self._call(lambda: self.manager.create(**fields))
        started = time.perf_counter()
        self._call(sandbox.remove)
        return time.perf_counter() - started

    def first_result(self) -> float:
        async def create() -> AsyncSandbox:
            sandbox = await self.manager.create()
            await sandbox.exec(["true"], check=True)
            return sandbox

        started = time.perf_counter()
        sandbox = self._call(create)
        elapsed = time.perf_counter() - started
        self._call(sandbox.remove)
        return elapsed

    def _check(self) -> None:
        """Raises `NotBuiltError` where what was opened is not what is to be measured."""

    def _manager(self) -> Any:
        return AsyncManager.open(settings(self))

    def _tree_call(self, name: str) -> Callable[..., Awaitable[Any]]:
        call = getattr(self.sandbox.files, name, None)
        if call is None:
            raise NotBuiltError(f"files.{name}")
        return call  # type: ignore[no-any-return]

    def _call(self, work: Callable[[], Awaitable[T]]) -> T:
        return self.portal.call(work)


class Relay(InProcess):
    """No directory and no socket shared with the engine's host."""

    options: ClassVar = {"shared_files": "no"}

    def _check(self) -> None:
        if self.link != "relay":
            raise NotBuiltError("the relay link")


class Embedded(InProcess):
    """No engine."""

    address: ClassVar = "embedded"


class Daemon(InProcess):
    """Through the daemon, by the blocking face."""

    def open(self) -> None:
        raise NotBuiltError("yaosb_jupyter.connect")


def settings(adapter: InProcess) -> Settings:
    """Of a manager of its own, apart from the user's; nothing ends by itself."""
    home = adapter.place.root / adapter.place.name
    image = "" if adapter.address == "embedded" else adapter.place.image
    pool = {"name": "bench", "address": adapter.address, "options": adapter.options, "image": image}
    return load_settings(
        file=os.devnull, environ={}, data_dir=home / "data", runtime_dir=home / "run", pools=[pool], idle_timeout=0
    )


async def _pieces(source: Path) -> AsyncIterator[bytes]:
    with source.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece
