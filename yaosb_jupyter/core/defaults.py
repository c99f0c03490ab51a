"""Options as asked for -> options as they hold: the pool's defaults, then the settings', then the runtime's. Pure."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TypeVar

from yaosb_jupyter.choices import Lifecycle
from yaosb_jupyter.core.policy import LONG_RUNNING_IDLE_FACTOR, ONE_SHOT_LIFETIME
from yaosb_jupyter.options import CreateOptions
from yaosb_jupyter.settings import Settings
from yaosb_jupyter.tai.runtimes.base import Capability, RuntimeInfo
from yaosb_jupyter.types import PoolSpec

_T = TypeVar("_T")

# Who and where, not what: these never count as differing.
_IDENTITY = frozenset({"id", "owner", "chat", "start"})


def complete(options: CreateOptions, pool: PoolSpec, settings: Settings, runtime: RuntimeInfo) -> CreateOptions:
    """``options`` without a field that is None or left to a default; `unheeded` tells what the runtime cannot give."""
    image = options.image or pool.image or settings.image
    return replace(
        options,
        pool=pool.name,
        image=(image if Capability.IMAGES in runtime.capabilities else "") or runtime.default_image,
        workdir=options.workdir or pool.workdir,
        user=options.user or pool.user,
        memory=_first(options.memory, pool.memory, settings.memory),
        cpus=_first(options.cpus, pool.cpus, settings.cpus),
        pids=_first(options.pids, pool.pids, settings.pids) or None,
        vnc=options.vnc and Capability.DESKTOP in runtime.capabilities,
        network=options.network or pool.network or runtime.default_network,
        idle_timeout=_first(options.idle_timeout, _default_idle(options.lifecycle, pool, settings)),
        max_lifetime=_first(options.max_lifetime, _default_lifetime(options.lifecycle, pool, settings)),
        stop_timeout=_first(options.stop_timeout, pool.timeouts.stop_timeout, settings.stop_timeout),
    )


def unheeded(options: CreateOptions, held: CreateOptions, runtime: RuntimeInfo) -> tuple[str, ...]:
    """What ``options`` name explicitly and the sandbox, made with those ``held``, does not have, one sentence each."""
    found = []
    if options.image not in ("", runtime.default_image) and Capability.IMAGES not in runtime.capabilities:
        found.append(f"image: {options.image!r} is not used, since {runtime.kind} runs the programs of its host")
    if options.vnc and not held.vnc:
        without = f"image {held.image!r}" if Capability.DESKTOP in runtime.capabilities else runtime.kind
        found.append(f"vnc: there is no desktop, since {without} has none to show")
    return tuple(found)


def differences(asked: CreateOptions, existing: CreateOptions) -> tuple[str, ...]:
    """What ``asked`` names explicitly and the existing sandbox has otherwise, one sentence each."""
    plain = CreateOptions()
    found = []
    for field in fields(CreateOptions):
        wanted, has = getattr(asked, field.name), getattr(existing, field.name)
        if field.name not in _IDENTITY and wanted != getattr(plain, field.name) and wanted != has:
            found.append(f"{field.name}: asked for {wanted!r}, the existing sandbox has {has!r}")
    return tuple(found)


def _default_idle(lifecycle: Lifecycle, pool: PoolSpec, settings: Settings) -> float:
    common = _first(pool.timeouts.idle_timeout, settings.idle_timeout)
    if lifecycle is Lifecycle.SESSION:
        return common
    return common * LONG_RUNNING_IDLE_FACTOR if lifecycle is Lifecycle.LONG_RUNNING else 0.0


def _default_lifetime(lifecycle: Lifecycle, pool: PoolSpec, settings: Settings) -> float:
    if lifecycle is Lifecycle.SESSION:
        return _first(pool.timeouts.max_lifetime, settings.max_lifetime)
    return ONE_SHOT_LIFETIME if lifecycle is Lifecycle.ONE_SHOT else 0.0


def _first(*values: _T | None) -> _T:
    """The first that is not None; 0 is a value."""
    return next(value for value in values if value is not None)
