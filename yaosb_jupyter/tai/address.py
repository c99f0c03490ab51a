"""What a pool's address means: which runtime, and what of the address is for that runtime to read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from yaosb_jupyter.checks import check_text
from yaosb_jupyter.errors import InvalidOptionError

LOCAL_NAMES: Final = frozenset({"local", "localhost", "127.0.0.1", "::1", "[::1]"})
"""All mean the platform's Docker engine."""

_ACCEPTED = (
    "accepted: local, embedded, unix:///PATH, tcp://HOST[:PORT], context://NAME, memory://NAME, tai://HOST[:PORT], "
    "k8s://[CONTEXT[/NAMESPACE]]"
)


class Kind(StrEnum):
    """The runtime behind an address; CHOOSE is a Docker engine that answers, else `EMBEDDED`."""

    CHOOSE = "choose"
    DOCKER = "docker"
    EMBEDDED = "embedded"
    MEMORY = "memory"
    TAI = "tai"
    KUBERNETES = "kubernetes"


_SCHEMES: Final = {
    "unix": Kind.DOCKER,
    "tcp": Kind.DOCKER,
    "context": Kind.DOCKER,
    "memory": Kind.MEMORY,
    "tai": Kind.TAI,
    "k8s": Kind.KUBERNETES,
}
_MAY_BE_EMPTY: Final = frozenset({Kind.MEMORY, Kind.KUBERNETES})


@dataclass(frozen=True, kw_only=True)
class Address:
    """``text`` as the runtime takes it (``local``, ``tcp://HOST``); ``rest`` what follows the scheme."""

    kind: Kind
    text: str
    rest: str = ""


def parse_address(address: str) -> Address:
    """Raises `InvalidOptionError` naming what is accepted. Reads nothing and reaches nothing."""
    check_text("address", address)
    text = address.strip()
    if not text:
        return Address(kind=Kind.CHOOSE, text="")
    if text in LOCAL_NAMES:
        return Address(kind=Kind.DOCKER, text="local")
    if text in (Kind.EMBEDDED, Kind.MEMORY):
        return Address(kind=Kind(text), text=text)
    scheme, separator, rest = text.partition("://")
    kind = _SCHEMES.get(scheme) if separator else None
    if kind is None:
        raise InvalidOptionError(f"address={address!r} is not valid", hint=_ACCEPTED)
    if not rest and kind not in _MAY_BE_EMPTY:
        raise InvalidOptionError(f"address={address!r} names no host", hint=_ACCEPTED)
    if scheme == "unix" and not rest.startswith("/"):
        raise InvalidOptionError(f"address={address!r} needs an absolute path", hint="accepted: unix:///PATH")
    return Address(kind=kind, text=text, rest=rest)
