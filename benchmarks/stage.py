"""What a run shares: its directory, the container that all join, the adapters opened so far."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.competitors import Adapter, Place, adapter_class
from benchmarks.competitors.docker_cli import docker
from benchmarks.harness import Contestant


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much is measured: bytes of the big outputs and files, seconds a row may take, seconds of watching."""

    output: int
    file: int
    seconds: float
    watch: float


FULL = Scale(output=2**30, file=64 * 2**20, seconds=1.0, watch=15.0)
QUICK = Scale(output=2**26, file=16 * 2**20, seconds=0.2, watch=3.0)

OURS = "yaosb in process"


class Stage:
    """Opens each adapter when it is first asked for, and takes all of it down at the end."""

    def __init__(self, image: str, scale: Scale) -> None:
        self.image = image
        self.scale = scale
        self.made: set[str] = set()  # sources that are there already
        self.root = Path(tempfile.mkdtemp(prefix="yb-"))
        self._opened: dict[str, Adapter | Exception] = {}
        self._stack = ExitStack()
        self._container = ""

    def __enter__(self) -> Self:
        self._stack.callback(shutil.rmtree, self.root, ignore_errors=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def adapter(self, name: str) -> Any:
        """The adapter, open. Raises what its opening raised, every time."""
        if name not in self._opened:
            self._opened[name] = self._open(name)
        found = self._opened[name]
        if isinstance(found, Exception):
            raise found
        return found

    def place_of(self, name: str) -> Place:
        """What an adapter is told of the run."""
        container = self._shared_container() if adapter_class(name).joins else ""
        return Place(
            name=name.replace(",", "").replace(" ", "-"), image=self.image, container=container, root=self.root
        )

    def contestants(self, names: Sequence[str], operation: Callable[[Any], float]) -> Sequence[Contestant]:
        """One operation, done through each of the adapters."""
        return [Contestant(name=name, measure=lambda name=name: operation(self.adapter(name))) for name in names]

    def links(self) -> str:
        """How ours reached their sandboxes, which the figures depend on."""
        links = {name: getattr(adapter, "link", "") for name, adapter in self._opened.items()}
        return ", ".join(f"{name}: {link}" for name, link in links.items() if link)

    def _open(self, name: str) -> Adapter | Exception:
        try:
            return self._stack.enter_context(adapter_class(name)(self.place_of(name)))
        except Exception as error:  # told in the adapter's every cell
            return error

    def _shared_container(self) -> str:
        """Ours, so that all are measured in the same one; a plain one while ours cannot be had."""
        if not self._container:
            try:
                self._container = self.adapter(OURS).container
            except Exception as error:
                print(f"measuring in a plain container, for {OURS} cannot be opened: {error}", file=sys.stderr)
                main = ("sh", "-c", "mkdir -p /workspace && sleep 1000000")
                self._container = docker("run", "--detach", "--init", self.image, *main)
                self._stack.callback(docker, "rm", "--force", self._container)
        return self._container
