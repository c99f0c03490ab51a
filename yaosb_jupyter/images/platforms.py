"""Platforms as engines name them, and the wheels that run on them."""

from __future__ import annotations

from dataclasses import dataclass

from yaosb_jupyter.errors import InvalidOptionError

_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_GLIBC_MINORS = (17, 26, 27, 28, 31, 34, 35, 36)
"""Of wheels' platform tags; Debian bookworm has 2.36."""


@dataclass(frozen=True, kw_only=True)
class Platform:
    """``architecture``: `amd64` or `arm64`."""

    architecture: str

    @classmethod
    def parse(cls, text: str) -> Platform:
        """``linux/amd64`` or ``linux/arm64``, with or without the system. Raises `InvalidOptionError`."""
        architecture = text.removeprefix("linux/").removesuffix("/v8")
        names = {"x86_64": "amd64", "aarch64": "arm64"}
        architecture = names.get(architecture, architecture)
        if architecture not in _MACHINES:
            accepted = ", ".join(f"linux/{name}" for name in _MACHINES)
            raise InvalidOptionError(f"platform={text!r} is not valid", hint=f"accepted: {accepted}")
        return cls(architecture=architecture)

    def __str__(self) -> str:
        return f"linux/{self.architecture}"

    @property
    def wheel_tags(self) -> tuple[str, ...]:
        """The platform tags of wheels that run here, the oldest last."""
        machine = _MACHINES[self.architecture]
        return (*(f"manylinux_2_{minor}_{machine}" for minor in reversed(_GLIBC_MINORS)), f"manylinux2014_{machine}")
