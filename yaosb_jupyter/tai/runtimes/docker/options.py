"""The options of a Docker pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from yaosb_jupyter.errors import InvalidOptionError

_SHARED = {"": None, "auto": None, "yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


@dataclass(frozen=True, kw_only=True)
class UidRange:
    """The user ids that sandboxes get where each has one of its own; both ends included."""

    first: int = 200_000
    last: int = 265_535

    @classmethod
    def parse(cls, text: str) -> UidRange:
        first, _, last = text.partition("-")
        try:
            found = cls(first=int(first), last=int(last or first))
        except ValueError:
            found = None
        if found is None or not 0 < found.first <= found.last < 2**31:
            raise InvalidOptionError(f"uid_range={text!r} is not valid", hint='accepted: "200000-265535"')
        return found


@dataclass(frozen=True, kw_only=True)
class DockerOptions:
    """What a pool's ``options`` say.

    ``context`` a Docker context's name; ``tls_ca``, ``tls_cert``, ``tls_key`` PEM files for ``tcp://``; ``uid_range``;
    ``shared_files`` whether directories of this host can be mounted, None to find out; ``guest`` whether images with
    python3 get our guest (``link=engine``: no, each command is an engine exec); ``probe_image`` the image whose python3
    finds out what a sandbox can reach.
    """

    context: str = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    uid_range: UidRange | None = None
    shared_files: bool | None = None
    guest: bool = True
    probe_image: str = ""

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> DockerOptions:
        """Raises `InvalidOptionError` for an option that is unknown or malformed."""
        accepted = sorted({"link", *(field.name for field in fields(cls))} - {"guest"})
        for name in options:
            if name not in accepted:
                raise InvalidOptionError(f"pool option {name!r} is unknown", hint="accepted: " + ", ".join(accepted))
        plain = {name: value for name, value in options.items() if name not in ("uid_range", "shared_files", "link")}
        uid_range, shared = options.get("uid_range", ""), options.get("shared_files", "").lower()
        if shared not in _SHARED:
            raise InvalidOptionError(f"shared_files={shared!r} is not valid", hint="accepted: auto, yes, no")
        if (link := options.get("link", "auto")) not in ("auto", "engine"):
            raise InvalidOptionError(f"link={link!r} is not valid", hint="accepted: auto, engine")
        return cls(
            guest=link == "auto",
            uid_range=UidRange.parse(uid_range) if uid_range else None,
            shared_files=_SHARED[shared],
            **plain,
        )
