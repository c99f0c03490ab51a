"""Whether a daemon was set up as its client would set one up. Settings are told as digests: they may hold secrets."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields

from yaosb_jupyter.settings import Settings

_NO_MATTER = ("data_dir", "runtime_dir", "daemon_idle_exit")
"""Settings that make no difference to sandboxes."""

_VARIABLES = ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "KUBECONFIG")
"""What else of the environment says where sandboxes run."""


def fingerprint(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """A digest of each setting and variable that makes a difference to sandboxes."""
    values = {field.name: getattr(settings, field.name) for field in fields(settings) if field.name not in _NO_MATTER}
    values |= {name: environ.get(name, "") for name in _VARIABLES}
    return {name: hashlib.sha256(repr(value).encode()).hexdigest()[:16] for name, value in values.items()}


def differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """Names of what differs; what only one of them knows of does not count."""
    return sorted(name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name])
