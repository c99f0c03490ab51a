"""The enumerations. Each is read from what people type by `of`."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TypeVar

from yaosb_jupyter.errors import InvalidOptionError

_E = TypeVar("_E", bound="_Choice")


class _Choice(StrEnum):
    @classmethod
    def of(cls: type[_E], value: str, field_name: str) -> _E:
        """The member called ``value`` (case, ``-`` and ``_`` do not matter), or `InvalidOptionError`."""
        wanted = re.sub(r"[-_ ]", "", str(value)).lower()
        for member in cls:
            if member.value.replace("-", "") == wanted:
                return member
        raise InvalidOptionError(
            f"{field_name}={value!r} is not valid", hint="accepted: " + ", ".join(member.value for member in cls)
        )


class Lifecycle(_Choice):
    """When a sandbox ends by itself."""

    ONE_SHOT = "one-shot"
    SESSION = "session"
    LONG_RUNNING = "long-running"
    PERSISTENT = "persistent"


class Status(_Choice):
    """What a sandbox is doing, as far as its engine has told."""

    CREATED = "created"
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    STOPPED = "stopped"
    REMOVING = "removing"
    REMOVED = "removed"
    FAILED = "failed"


class Network(_Choice):
    """What a sandbox can reach: nothing, what its host reaches, or a list of names through a proxy."""

    NONE = "none"
    BRIDGE = "bridge"
    ALLOWLIST = "allowlist"


class ExecChannel(_Choice):
    """Which of a command's two outputs a chunk came from."""

    STDOUT = "stdout"
    STDERR = "stderr"


class VncStatus(_Choice):
    """Whether a sandbox's desktop can be looked at."""

    UNAVAILABLE = "unavailable"
    """It has one, but does not run or cannot be reached."""
    NOT_SUPPORTED = "not_supported"
    """Its image, or its runtime, has none."""
    STARTING = "starting"
    READY = "ready"


class FileChange(_Choice):
    """What happened to a file of a watched directory."""

    CREATED = "created"
    CHANGED = "changed"
    REMOVED = "removed"
