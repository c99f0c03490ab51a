"""What names, labels and variables may look like. Every rule raises `InvalidOptionError` naming the field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Any

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


def check_text(field: str, value: object) -> None:
    """Raises `InvalidOptionError` unless ``value`` is text that UTF-8 can hold, without NUL."""
    try:
        good = isinstance(value, str) and "\0" not in value and value.encode() is not None
    except UnicodeEncodeError:
        good = False
    if not good:
        raise InvalidOptionError(f"{field}={value!r} is not valid", hint="accepted: text")


def fits_system(text: str) -> bool:
    """Whether the system's bytes can hold it: UTF-8, and what `os.fsdecode` makes of bytes that are none."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def is_address(value: object) -> bool:
    """Whether it is an IP address as engines read them: without a zone."""
    try:
        return isinstance(value, str) and "%" not in value and ip_address(value) is not None
    except ValueError:
        return False


def check_number(field: str, value: object, low: float, high: float, *, whole: bool = True) -> None:
    """Raises `InvalidOptionError` unless ``value`` is a number from ``low`` to ``high``."""
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        kind = "a whole number" if whole else "a number"
        raise InvalidOptionError(f"{field}={value!r} is not valid", hint=f"accepted: {kind}, {low} to {high}")


def check_flag(field: str, value: object) -> None:
    """Raises `InvalidOptionError` unless ``value`` is a bool."""
    if not isinstance(value, bool):
        raise InvalidOptionError(f"{field}={value!r} is not valid", hint="accepted: True, False")


def several(field: str, value: Any) -> tuple[Any, ...]:
    """The items of a list or the like; raises `InvalidOptionError` for what is none."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidOptionError(f"{field}={value!r} is not valid", hint="accepted: a list")
    return tuple(value)


def check_mapping(field: str, value: object) -> None:
    """Raises `InvalidOptionError` unless ``value`` maps names to what they mean."""
    if not isinstance(value, Mapping):
        raise InvalidOptionError(f"{field}={value!r} is not valid", hint="accepted: a mapping of names to text")


def is_name(value: object) -> bool:
    """Starts alphanumeric, then letters, digits, ``.``, ``_`` and ``-``; at most 128 characters."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def check_id(value: str) -> None:
    """Raises `InvalidOptionError` unless ``value`` can be a sandbox's id (DESIGN, Identity)."""
    if not is_name(value) or ".." in value:
        raise InvalidOptionError(
            f"id={value!r} is not valid",
            hint="accepted: up to 128 letters, digits, . _ -, starting with a letter or digit, without '..'",
        )


def check_label(key: str, value: str) -> None:
    """Raises `InvalidOptionError` for a reserved or malformed label."""
    check_text("labels", key)
    if key in RESERVED_LABELS:
        raise InvalidOptionError(f"labels: {key!r} is reserved", hint="choose another name")
    if not _LABEL_KEY.fullmatch(key):
        raise InvalidOptionError(f"labels: {key!r} is not a valid name", hint="accepted: letters, digits, . _ - /")
    check_text(f"labels: {key}", value)


def check_env(name: str, value: str) -> None:
    """Raises `InvalidOptionError` for what cannot be an environment variable."""
    check_text("env", name)
    if not _ENV_NAME.fullmatch(name):
        raise InvalidOptionError(f"env: {name!r} is not a valid name", hint="accepted: letters, digits and _")
    if not isinstance(value, str) or "\0" in value or not fits_system(value):
        raise InvalidOptionError(f"env: the value of {name!r} is not valid", hint="accepted: text without NUL")
