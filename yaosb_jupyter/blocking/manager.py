"""`Manager`: the sandboxes of one data directory, as programs that do not use asyncio use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, Unpack

from yaosb_jupyter.blocking.face import Face
from yaosb_jupyter.blocking.loop import Loop, background
from yaosb_jupyter.blocking.sandbox import RunFields, Sandbox, exec_fields
from yaosb_jupyter.blocking.stream import CommandStream
from yaosb_jupyter.choices import Lifecycle, Status
from yaosb_jupyter.core.commands.execution import CommandLine
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.core.service import Progress
from yaosb_jupyter.options import CreateFields
from yaosb_jupyter.settings import Settings
from yaosb_jupyter.types import ExecResult, PoolInfo, PoolSpec, ProxyHealth, SandboxInfo
from yaosb_jupyter.units import DurationLike


class Manager(Face):
    """All that can be done with sandboxes; see `AsyncManager`, whose every call this waits for.

    Works in any thread, also while a loop of asyncio's runs in it (a notebook's). Made by `yaosb_jupyter.connect`, or
    by `open`, which owns the data directory in this process. ``progress`` is called on the background loop: it must
    not block.
    """

    def __init__(self, loop: Loop, inner: AsyncManager) -> None:
        super().__init__(loop)
        self._inner = inner
        loop.keep(inner)

    @classmethod
    def open(cls, settings: Settings | None = None, **overrides: Any) -> Self:
        """A manager without a daemon; see `AsyncManager.open`. Sandboxes are looked after until `close`."""
        loop = background()
        return cls(loop, loop.run(lambda: AsyncManager.open(settings, **overrides)))

    @property
    def inner(self) -> AsyncManager:
        """The asynchronous face that this one waits for. It lives on the background loop."""
        return self._inner

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def create(self, id: str = "", /, *, progress: Progress | None = None, **fields: Unpack[CreateFields]) -> Sandbox:
        """A new sandbox, running unless ``start=False``; see `AsyncManager.create`."""
        return self._handle(self._run(lambda: self._inner.create(id, progress=progress, **fields)))

    def get(self, ref: str) -> Sandbox:
        """Raises `NotFoundError`, for another owner's too."""
        return self._handle(self._run(lambda: self._inner.get(ref)))

    def get_or_create(
        self, id: str = "", /, *, progress: Progress | None = None, **fields: Unpack[CreateFields]
    ) -> Sandbox:
        """The sandbox of that id, else of that (owner, chat), started if it was stopped; else a new one."""
        return self._handle(self._run(lambda: self._inner.get_or_create(id, progress=progress, **fields)))

    def list(
        self,
        *,
        owner: str = "",
        status: Status | str | None = None,
        lifecycle: Lifecycle | str | None = None,
        pool: str = "",
        labels: Mapping[str, str] | None = None,
    ) -> Sequence[SandboxInfo]:
        """Those that match all that is given, by time of creation."""
        return self._run(
            lambda: self._inner.list(owner=owner, status=status, lifecycle=lifecycle, pool=pool, labels=labels)
        )

    def start(self, ref: str) -> SandboxInfo:
        return self._run(lambda: self._inner.start(ref))

    def stop(self, ref: str, timeout: DurationLike | None = None) -> SandboxInfo:
        return self._run(lambda: self._inner.stop(ref, timeout))

    def remove(self, ref: str) -> None:
        self._run(lambda: self._inner.remove(ref))

    def exec(self, ref: str, command: CommandLine, **fields: Unpack[RunFields]) -> ExecResult[str]:
        """See `Sandbox.exec`, which also gives bytes and calls back."""
        return self._run(lambda: self._inner.exec(ref, command, **exec_fields(fields)))

    def stream(self, ref: str, command: CommandLine, **fields: Any) -> CommandStream[str]:
        """See `Sandbox.stream`."""
        return CommandStream(self._loop, self._run(lambda: self._inner.stream(ref, command, **fields)))

    def kill_process(self, ref: str, pattern: str) -> Sequence[int]:
        return self._run(lambda: self._inner.kill_process(ref, pattern))

    def heartbeat(self, ref: str, *, active: bool, process_count: int = 0) -> None:
        self._run(lambda: self._inner.heartbeat(ref, active=active, process_count=process_count))

    def cleanup(self) -> Sequence[str]:
        """Applies the lifecycles now; returns the ids of what was stopped or removed."""
        return self._run(self._inner.cleanup)

    def pools(self) -> Sequence[PoolInfo]:
        """The first is the default. Those that left the configuration while they had sandboxes are among them."""
        return self._run(self._inner.pools)

    def add_pool(self, spec: PoolSpec) -> PoolInfo:
        """Raises `AlreadyExistsError`, and what keeps it from being reached."""
        return self._run(lambda: self._inner.add_pool(spec))

    def remove_pool(self, name: str, *, force: bool = False) -> None:
        """Raises `PoolInUseError` where it has sandboxes, unless ``force``, which removes them too."""
        self._run(lambda: self._inner.remove_pool(name, force=force))

    def image_exists(self, image: str, *, pool: str = "") -> bool:
        return self._run(lambda: self._inner.image_exists(image, pool=pool))

    def pull_image(self, image: str, *, pool: str = "", progress: Progress | None = None) -> None:
        self._run(lambda: self._inner.pull_image(image, pool=pool, progress=progress))

    def proxy_healthz(self) -> ProxyHealth:
        """That the proxy behind `Sandbox.proxy` answers, and its address. Raises `UnavailableError`."""
        return self._run(self._inner.proxy_healthz)

    def close(self) -> None:
        """Lets go; sandboxes go on."""
        self._run(self._inner.close)

    def _handle(self, inner: AsyncSandbox) -> Sandbox:
        return Sandbox(self._loop, inner)
