"""What a client sends of its own settings: the fields of ``create`` that it leaves open."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from yaosb_jupyter.options import CreateOptions

_OPEN = CreateOptions()
_MERGED = ("labels", "env")


def with_defaults(options: CreateOptions, defaults: CreateOptions) -> CreateOptions:
    """``options`` with ``defaults`` where they say nothing; labels and environments are joined."""
    changes: dict[str, Any] = {
        item.name: getattr(defaults, item.name)
        for item in fields(CreateOptions)
        if getattr(options, item.name) == getattr(_OPEN, item.name)
    }
    for name in _MERGED:
        changes[name] = {**getattr(defaults, name), **getattr(options, name)}
    return replace(options, **changes)
