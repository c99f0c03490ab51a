"""What names, labels and variables may look like. Every rule raises `InvalidOptionError` naming the field."""

from __future__ import annotations

import re

from yaosb_jupyter.errors import InvalidOptionError

RESERVED_LABELS = frozenset(
    {
        "managed-by",
        "sandbox-uid",
        "sandbox-id",
        "sandbox-owner",
        "sandbox-pool",
        "sandbox-policy",
        "sandbox-data-dir",
    }
)

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_LABEL_KEY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,126}[A-Za-z0-9])?")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_name(value: str) -> bool:
    """Starts alphanumeric, then letters, digits, ``.``, ``_`` and ``-``; at most 128 characters."""
    return _ID.fullmatch(value) is not None


def check_id(value: str) -> None:
    """Raises `InvalidOptionError` unless ``value`` can be a sandbox's id (DESIGN, Identity)."""
    if not is_name(value) or ".." in value:
        raise InvalidOptionError(
            f"id={value!r} is not valid",
            hint="accepted: up to 128 letters, digits, . _ -, starting with a letter or digit, without '..'",
        )


def check_label(key: str, value: str) -> None:
    """Raises `InvalidOptionError` for a reserved or malformed label."""
    if key in RESERVED_LABELS:
        raise InvalidOptionError(f"labels: {key!r} is reserved", hint="choose another name")
    if not _LABEL_KEY.fullmatch(key):
        raise InvalidOptionError(f"labels: {key!r} is not a valid name", hint="accepted: letters, digits, . _ - /")
    if not isinstance(value, str) or "\0" in value:
        raise InvalidOptionError(f"labels: the value of {key!r} is not valid", hint="accepted: text without NUL")


def check_env(name: str, value: str) -> None:
    """Raises `InvalidOptionError` for what cannot be an environment variable."""
    if not _ENV_NAME.fullmatch(name):
        raise InvalidOptionError(f"env: {name!r} is not a valid name", hint="accepted: letters, digits and _")
    if not isinstance(value, str) or "\0" in value:
        raise InvalidOptionError(f"env: the value of {name!r} is not valid", hint="accepted: text without NUL")
