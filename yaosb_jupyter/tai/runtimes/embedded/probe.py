"""Choosing the means: by trying each, the strongest first, once per boot."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from yaosb_jupyter.errors import RuntimeUnavailableError, SandboxError
from yaosb_jupyter.guest import landlock, seccomp
from yaosb_jupyter.tai.runtimes.base import EnvironmentEvent, RuntimeInfo
from yaosb_jupyter.tai.runtimes.embedded import bubblewrap
from yaosb_jupyter.tai.runtimes.embedded.cgroups import find_cgroups
from yaosb_jupyter.tai.runtimes.embedded.handles import boot_id
from yaosb_jupyter.tai.runtimes.embedded.host import EmbeddedHost, HostFiles
from yaosb_jupyter.tai.runtimes.embedded.isolation import Found, capabilities, isolation
from yaosb_jupyter.tai.runtimes.embedded.options import EmbeddedOptions, Means
from yaosb_jupyter.tai.runtimes.embedded.record import RecordStore
from yaosb_jupyter.tai.runtimes.embedded.trial import try_host
from yaosb_jupyter.tai.runtimes.embedded.view import HostView
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.types import Network
from yaosb_jupyter.version import __version__

Tell = Callable[[EnvironmentEvent], None]


@dataclass(frozen=True, kw_only=True)
class Probed:
    host: EmbeddedHost
    info: RuntimeInfo


async def probe_host(options: EmbeddedOptions, runtime_dir: Path, state_dir: Path, tell: Tell) -> Probed:
    """The strongest of the allowed means that works. Raises `RuntimeUnavailableError` with why each does not."""
    files = await in_thread(HostFiles.install, runtime_dir)
    store = RecordStore(state_dir)
    await in_thread(store.open)
    view = HostView.of_this_python()
    cgroups = await in_thread(find_cgroups)

    def host(means: Means, tell: Tell) -> EmbeddedHost:
        return EmbeddedHost(means=means, view=view, files=files, store=store, cgroups=cgroups, tell=tell)

    cache = state_dir / f"found-{_key(options, view, files, grouped=cgroups is not None)}"
    found = await in_thread(_read, cache)
    if found is None:
        found = await _try_all(options, lambda means: host(means, lambda _: None))
        await in_thread(_write, cache, found)
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
    return Probed(host=host(found.means, tell), info=info)


async def _try_all(options: EmbeddedOptions, host: Callable[[Means], EmbeddedHost]) -> Found:
    reasons: list[str] = []
    for means in options.means:
        if means.has_namespaces and bubblewrap.program() is None:
            reasons.append(f"{means}: bwrap is not there")
            continue
        if means is Means.LANDLOCK and landlock.version() == 0:
            reasons.append(f"{means}: the kernel has no Landlock")
            continue
        try:
            alone = await try_host(host(means), Network.NONE, options.uids)
            bridged = await try_host(host(means), Network.BRIDGE, options.uids)
        except SandboxError as error:
            reasons.append(f"{means}: {error.message}")
            continue
        return Found(
            means=means,
            alone=alone,
            bridged=bridged,
            grouped=host(means).cgroups is not None,
            own_user=os.geteuid() == 0,
            landlock=means is not Means.PLAIN and landlock.version() > 0,
            seccomp=means is not Means.PLAIN and os.uname().machine in seccomp.ARCHITECTURES,
        )
    raise RuntimeUnavailableError(
        "no isolation works on this host: " + "; ".join(reasons),
        hint="use Docker, allow user namespaces or Landlock, or, for code you trust, the pool option plain=yes",
    )


def _key(options: EmbeddedOptions, view: HostView, files: HostFiles, *, grouped: bool) -> str:
    """Changes with everything that the answer hangs on."""
    parts = (boot_id(), os.geteuid(), options, view, files.guest, bubblewrap.program(), grouped, __version__)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _read(cache: Path) -> Found | None:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(cache.read_bytes(), type=Found)
    return None


def _write(cache: Path, found: Found) -> None:
    for old in cache.parent.glob("found-*"):
        with contextlib.suppress(FileNotFoundError):
            old.unlink()
    fresh = cache.with_name(f"new-{os.getpid()}-{cache.name}")
    fresh.write_bytes(msgspec.json.encode(found))
    fresh.replace(cache)
