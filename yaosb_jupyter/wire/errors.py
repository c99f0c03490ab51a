"""Errors <-> codes. A code is the name of the class; every class of `yaosb_jupyter.errors` has one."""

from __future__ import annotations

import base64
import inspect
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from yaosb_jupyter import errors
from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.types import ExecResult
from yaosb_jupyter.wire.codec import from_json

CANCELLED = "Cancelled"
"""The code of a call that its caller, or the end of the other side, cancelled."""

CODES: Mapping[str, type[SandboxError]] = {
    name: kind
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, SandboxError) and not name.startswith("_")
}


def error_to_json(error: SandboxError) -> dict[str, Any]:
    """The error with all its fields."""
    known = next(kind for kind in type(error).__mro__ if CODES.get(kind.__name__) is kind)
    fields = {key: value for key, value in vars(error).items() if key in _FIELDS and value is not None}
    if isinstance(result := fields.pop("result", None), ExecResult):
        fields["result"] = _result_to_json(result)
    return {"code": known.__name__, **fields}


def error_from_json(message: Mapping[str, Any]) -> SandboxError:
    """The error that `error_to_json` told; of a code not known here, a newer side's, a plain `SandboxError`."""
    kind = CODES.get(str(message.get("code")), SandboxError)
    given = {name: message[name] for name in _FIELDS if isinstance(message.get(name), _FIELDS[name])}
    if "result" in given:
        given["result"] = _result_from_json(given["result"])
    error = kind(str(given.pop("message", message.get("code", "failed"))))
    for name, value in given.items():
        if hasattr(error, name):
            setattr(error, name, value)
    return error


_FIELDS: Mapping[str, type] = {
    "message": str,
    "sandbox": str,
    "pool": str,
    "hint": str,
    "exit_code": int,
    "result": dict,
}


def _result_to_json(result: ExecResult[Any]) -> dict[str, Any]:
    if isinstance(result.stdout, str):
        return {**asdict(result), "encoding": "text"}
    outputs = {name: base64.b64encode(getattr(result, name)).decode() for name in ("stdout", "stderr")}
    return {**asdict(result), **outputs, "encoding": "base64"}


def _result_from_json(message: Mapping[str, Any]) -> ExecResult[Any]:
    kind: Any = ExecResult[str] if message.get("encoding") == "text" else ExecResult[bytes]
    result: ExecResult[Any] = from_json(kind, dict(message))
    return result
