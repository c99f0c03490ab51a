"""Names: uids, ids, what engines call an environment, owners as path components. Pure but for `new_uid`, `new_id`."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from urllib.parse import unquote

from yaosb_jupyter.checks import check_id
from yaosb_jupyter.errors import InvalidOptionError

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ID_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
_UID = re.compile(rf"[0-7][{_CROCKFORD}]{{25}}")
_NAME_MAX = 63
_COMPONENT_MAX = 255  # bytes of a file name


def new_uid() -> str:
    """A ULID: 48 bits of milliseconds since 1970, 80 random bits; sorts by time of creation."""
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


def is_uid(text: str) -> bool:
    return _UID.fullmatch(text) is not None


def new_id() -> str:
    """An id for a sandbox that nobody named."""
    return "sb-" + "".join(secrets.choice(_ID_ALPHABET) for _ in range(8))


def chat_id(owner: str, chat: str) -> str:
    """The id of the sandbox of an owner's chat: ``{owner}-{chat}``, with a short hash where that is not an id."""
    plain = f"{owner}-{chat}"
    try:
        check_id(plain)
    except InvalidOptionError:
        slug = re.sub(r"[^A-Za-z0-9._-]+|\.\.+", "-", plain).strip("-._")[:100] or "chat"
        return f"{slug}-{_digest(owner, chat)}"
    return plain


def environment_name(owner: str, label: str, uid: str = "") -> str:
    """``yao-sb-{owner}-{label}``, DNS-safe, at most 63; with a short hash where anything was cut or replaced.

    ``uid`` makes it unique where the plain name is taken.
    """
    plain = f"yao-sb-{owner}-{label}"
    slug = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    if slug == plain and len(slug) <= _NAME_MAX and not uid:
        return slug
    suffix = "-" + _digest(owner, label, uid)
    return slug[: _NAME_MAX - len(suffix)].rstrip("-") + suffix


def check_owner(owner: str) -> None:
    """Raises `InvalidOptionError` for what cannot be an owner: empty, with control characters, or too long."""
    if not owner or not owner.isprintable() or len(path_of_owner(owner).encode()) > _COMPONENT_MAX:
        raise InvalidOptionError(
            f"owner={owner!r} is not valid", hint="accepted: up to 255 bytes of printable text, an e-mail address too"
        )


def path_of_owner(owner: str) -> str:
    """``owner`` as one path component; `owner_of_path` turns it back."""
    return re.sub(r"[/%\x00-\x1f\x7f]|^\.", lambda match: f"%{ord(match[0]):02X}", owner)


def owner_of_path(component: str) -> str:
    return unquote(component)


def owner_label(owner: str) -> str:
    """``owner`` as a label's value; hashed where a label cannot hold it (Kubernetes' rule, the narrowest)."""
    if re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", owner):
        return owner
    return "sha256." + hashlib.sha256(owner.encode()).hexdigest()[:40]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]
