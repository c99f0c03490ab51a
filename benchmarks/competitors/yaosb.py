"""Ours, by the blocking face: in the caller's process, through the daemon, through a relay, without an engine."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.competitors.base import Adapter, Drained
from benchmarks.competitors.host import STUBBORN
from benchmarks.harness import NotBuiltError
from yaosb_jupyter import Exit, Manager, Output, Sandbox, connect, load_settings
from yaosb_jupyter.blocking.loop import background
from yaosb_jupyter.daemon.place import Place as DaemonPlace
from yaosb_jupyter.daemon.stop import stop_daemon


class InProcess(Adapter):
    """The manager in this process, as a program without a daemon uses it."""

    address: ClassVar = "local"
    options: ClassVar[dict[str, str]] = {}
    manager: Manager
    sandbox: Sandbox

    def open(self) -> None:
        self.home = self.place.root / self.place.name
        with ExitStack() as opened:
            self.manager = opened.enter_context(self._manager(opened))
            self.sandbox = self.manager.create("bench")
            opened.callback(self.sandbox.remove)
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
        return self.sandbox.exec(argv).exit_code

    def first_output(self, argv: Sequence[str]) -> float:
        arrived, started = 0.0, time.perf_counter()
        for event in self.sandbox.stream(argv):
            if not arrived and isinstance(event, Output):
                arrived = time.perf_counter()
        return arrived - started

    def drain(self, argv: Sequence[str], *, text: bool) -> Drained:
        size = 0
        for event in self.sandbox.stream(argv, encoding="utf-8" if text else None):
            if isinstance(event, Exit):
                return Drained(size=size, exit_code=event.status.exit_code)
            size += len(event.data)
        raise AssertionError("a stream ends with an Exit event")

    def put_file(self, source: Path, target: str) -> None:
        self.sandbox.copy_to(source, target)

    def get_file(self, source: str, target: Path) -> None:
        self.sandbox.copy_from(source, target)

    put_tree = put_file
    get_tree = get_file

    def first_result(self) -> float:
        started = time.perf_counter()
        sandbox = self.manager.create()
        sandbox.exec(["true"], check=True)
        elapsed = time.perf_counter() - started
        sandbox.remove()
        return elapsed

    def removal(self, *, stubborn: bool) -> float:
        fields: Any = {"cmd": ["sh", "-c", STUBBORN]} if stubborn else {}
        sandbox = self.manager.create(**fields)
        started = time.perf_counter()
        sandbox.remove()
        return time.perf_counter() - started

    def _manager(self, _opened: ExitStack) -> Manager:
        return Manager.open(load_settings(file=self._config(), environ={}, data_dir=self.home / "data"))

    def _config(self) -> Path:
        """Of a manager apart from the user's own, where nothing ends by itself."""
        image = "" if self.address == "embedded" else self.place.image
        pool = {"name": "bench", "address": self.address, "options": self.options, "image": image}
        config = {"pools": [pool], "idle_timeout": 0, "runtime_dir": str(self.home / "run")}
        self.home.mkdir()
        path = self.home / "yaosb.yaml"
        path.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
        return path

    def _check(self) -> None:
        """Raises `NotBuiltError` where what was opened is not what is to be measured."""


class InProcessAsync(InProcess):
    """The same by the asynchronous face: no other thread waits for each event."""

    def drain(self, argv: Sequence[str], *, text: bool) -> Drained:
        async def drain() -> Drained:
            size, sandbox = 0, await self.manager.inner.get("bench")
            async for event in sandbox.stream(argv, encoding="utf-8" if text else None):
                if isinstance(event, Exit):
                    return Drained(size=size, exit_code=event.status.exit_code)
                size += len(event.data)
            raise AssertionError("a stream ends with an Exit event")

        return background().run(drain)


class Daemon(InProcess):
    """Through the daemon, as notebooks and scripts use it."""

    def _manager(self, opened: ExitStack) -> Manager:
        # The daemon is configured by the environment of whoever starts it.
        for name in [name for name in os.environ if name.startswith("YAO_")]:
            del os.environ[name]
        os.environ["YAO_CONFIG"] = str(self._config())
        opened.callback(self._stop)
        return connect(self.home / "data")

    def _stop(self) -> None:
        asyncio.run(stop_daemon(DaemonPlace.of(load_settings(data_dir=self.home / "data"))))


class Relay(InProcess):
    """No directory and no socket shared with the engine's host."""

    options: ClassVar = {"shared_files": "no"}

    def _check(self) -> None:
        if self.link != "relay":
            raise NotBuiltError("the relay link")


class Embedded(InProcess):
    """No engine."""

    address: ClassVar = "embedded"
