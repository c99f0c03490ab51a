"""Choosing the means: by trying each, the strongest first, once per boot."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import platformdirs

from yaosb_jupyter.choices import Network
from yaosb_jupyter.errors import RuntimeUnavailableError, SandboxError
from yaosb_jupyter.guest import landlock, seccomp
from yaosb_jupyter.link.program import guest_program
from yaosb_jupyter.tai.runtimes.base import EnvironmentEvent, RuntimeInfo
from yaosb_jupyter.tai.runtimes.embedded import bubblewrap
from yaosb_jupyter.tai.runtimes.embedded.cgroups import Cgroups, find_cgroups
from yaosb_jupyter.tai.runtimes.embedded.handles import boot_id
from yaosb_jupyter.tai.runtimes.embedded.host import EmbeddedHost, HostFiles
from yaosb_jupyter.tai.runtimes.embedded.isolation import Found, capabilities, isolation
from yaosb_jupyter.tai.runtimes.embedded.launchers import Launchers
from yaosb_jupyter.tai.runtimes.embedded.options import EmbeddedOptions, Means
from yaosb_jupyter.tai.runtimes.embedded.record import RecordStore
from yaosb_jupyter.tai.runtimes.embedded.trial import sweep_trials, try_host
from yaosb_jupyter.tai.runtimes.embedded.view import HostView
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.version import __version__

Tell = Callable[[EnvironmentEvent], None]


@dataclass(frozen=True, kw_only=True)
class Probed:
    host: EmbeddedHost
    info: RuntimeInfo


async def probe_host(options: EmbeddedOptions, runtime_dir: Path, state_dir: Path, tell: Tell) -> Probed:
    """The strongest of the allowed means that works. Raises `RuntimeUnavailableError` with why each does not."""
    ground = await in_thread(_look, options, runtime_dir, state_dir)
    found = await in_thread(_read, ground.cache)
    if found is None:
        try:
            found = await _try_all(options, ground)
        except BaseException:
            await in_thread(ground.launchers.close)
            raise
        await in_thread(_write, ground.cache, found)
    info = RuntimeInfo(
        kind="embedded",
        version=__version__,
        is_local=True,
        shared_files=True,
        isolation=isolation(found),
        default_network=Network.NONE,
        default_image="host",
        capabilities=capabilities(found),
    )
    return Probed(host=await in_thread(ground.host, found.means, tell), info=info)


@dataclass(frozen=True, kw_only=True)
class _Ground:
    """What there is before anything was tried. ``cache``: where what is found then is kept until the next boot."""

    runtime_dir: Path
    store: RecordStore
    view: HostView
    cgroups: Cgroups | None
    bwrap: str | None
    cache: Path
    launchers: Launchers = field(default_factory=Launchers)

    def host(self, means: Means, tell: Tell) -> EmbeddedHost:
        """Blocks."""
        dropped = os.geteuid() == 0 and not means.has_namespaces
        files = HostFiles.passable(self.runtime_dir) if dropped else HostFiles.install(self.runtime_dir / "e")
        return EmbeddedHost(
            means=means,
            view=self.view,
            bwrap=self.bwrap or "",
            files=files,
            store=self.store,
            cgroups=self.cgroups,
            launchers=self.launchers,
            tell=tell,
        )


def _look(options: EmbeddedOptions, runtime_dir: Path, state_dir: Path) -> _Ground:
    store = RecordStore(state_dir)
    store.open()
    view, cgroups, bwrap = HostView.of_this_python(), find_cgroups(), bubblewrap.find_program()
    if cgroups is not None:
        cgroups.sweep()
    # The answer hangs on all of this.
    parts = (boot_id(), os.geteuid(), options, view, guest_program(), bwrap, cgroups, __version__)
    key = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
    cache = Path(platformdirs.user_cache_dir("yaosb")) / f"embedded-{parts[0][:8]}-{key}"
    return _Ground(runtime_dir=runtime_dir, store=store, view=view, cgroups=cgroups, bwrap=bwrap, cache=cache)


async def _try_all(options: EmbeddedOptions, ground: _Ground) -> Found:
    reasons: list[str] = []
    for means in options.means:
        missing = _missing(means, ground)
        if missing:
            reasons.append(f"{means}: {missing}")
            continue
        host = await in_thread(ground.host, means, lambda _: None)
        await in_thread(sweep_trials, host)
        try:
            alone = await try_host(host, Network.NONE, options.uids)
            bridged = await try_host(host, Network.BRIDGE, options.uids)
        except SandboxError as error:
            reasons.append(f"{means}: {error.message}")
            continue
        return Found(
            means=means,
            alone=alone,
            bridged=bridged,
            grouped=ground.cgroups is not None,
            own_user=os.geteuid() == 0,
            landlock=means is not Means.PLAIN and landlock.version() > 0,
            seccomp=means is not Means.PLAIN and os.uname().machine in seccomp.ARCHITECTURES,
        )
    raise RuntimeUnavailableError(
        "no isolation works on this host: " + "; ".join(reasons),
        hint="use Docker, allow user namespaces or Landlock, or, for code you trust, the pool option plain=yes",
    )


def _missing(means: Means, ground: _Ground) -> str:
    if means.has_namespaces and ground.bwrap is None:
        return "bwrap is not there"
    if means is Means.LANDLOCK and landlock.version() == 0:
        return "the kernel has no Landlock"
    return ""


def _read(cache: Path) -> Found | None:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(cache.read_bytes(), type=Found)
    return None


def _write(cache: Path, found: Found) -> None:
    """Where that is refused, the next start tries again."""
    boot = cache.name.rpartition("-")[0]
    with contextlib.suppress(OSError):
        cache.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for old in cache.parent.glob("embedded-*"):
            if not old.name.startswith(boot):
                old.unlink(missing_ok=True)
        fresh = cache.with_name(f"new-{os.getpid()}-{cache.name}")
        fresh.write_bytes(msgspec.json.encode(found))
        fresh.replace(cache)
