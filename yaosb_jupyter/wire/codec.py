"""JSON <-> types."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from yaosb_jupyter.errors import InvalidOptionError, ProtocolError

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """``value``, a record of `yaosb_jupyter.types` or what holds such, as objects, lists, text and numbers."""
    return msgspec.to_builtins(value)


def from_json(kind: type[T], value: Any) -> T:
    """The ``kind`` that `to_json` made ``value`` of; fields it does not know, a newer side's, are dropped.

    Raises `InvalidOptionError` for what the type itself refuses, `ProtocolError` for all else.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, InvalidOptionError):
            raise error.__cause__ from None
        raise ProtocolError(f"no {getattr(kind, '__name__', kind)}: {error}") from None
