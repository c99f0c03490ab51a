"""Which headers pass, and what they say on the other side. Pure.

Applications of a sandbox are hostile to the browser: their pages get an origin that nobody shares (``CSP: sandbox``),
and neither see nor set cookies, which browsers share between all ports of a host, the notebook server's too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from yaosb_jupyter.tai.http import Headers, value_of

Header = tuple[bytes, bytes]


@dataclass(frozen=True, kw_only=True)
class Mount:
    """Where a port is shown: below ``prefix`` of ``origin``, as the browser names it. Inside it is at `inner`."""

    origin: str
    prefix: str
    port: int

    @property
    def inner(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def outer(self) -> str:
        return self.origin + self.prefix


POLICY: Final[tuple[Header, ...]] = (
    (b"content-security-policy", b"sandbox allow-scripts allow-forms allow-popups"),
    (b"access-control-allow-origin", b"null"),
    (b"access-control-expose-headers", b"*"),
    (b"cross-origin-resource-policy", b"cross-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
)
"""On every response. A page's own requests come from the origin ``null``, and may be read by it."""

_HOP_BY_HOP: Final = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer upgrade".split()
)
_NOT_PASSED_IN: Final = frozenset(b"host cookie origin referer forwarded".split())
_NOT_PASSED_OUT: Final = frozenset(
    b"transfer-encoding set-cookie set-cookie2 clear-site-data strict-transport-security public-key-pins alt-svc nel "
    b"report-to reporting-endpoints service-worker-allowed x-frame-options location "
    b"access-control-allow-credentials access-control-allow-headers access-control-allow-methods "
    b"access-control-max-age".split()
)
"""What speaks for the whole host, for others' pages, or is told anew; a page may be framed by whoever has its path."""


def has_two_lengths(headers: Headers) -> bool:
    """Whether two readers of a request may find its end at two places (RFC 9112, 6.3)."""
    return bool(value_of(headers, b"content-length") and value_of(headers, b"transfer-encoding"))


def is_websocket(headers: Headers) -> bool:
    return b"upgrade" in _listed(headers, b"connection") and _listed(headers, b"upgrade") == {b"websocket"}


def is_preflight(method: bytes, headers: Headers) -> bool:
    """Whether a browser asks what a page may do. The application knows nothing of its page's strange origin."""
    return method == b"OPTIONS" and bool(value_of(headers, b"access-control-request-method"))


def preflight_headers(headers: Headers) -> list[Header]:
    """The answer: what was asked for."""
    asked = {
        b"access-control-allow-methods": value_of(headers, b"access-control-request-method"),
        b"access-control-allow-headers": value_of(headers, b"access-control-request-headers"),
    }
    return [*POLICY, (b"access-control-max-age", b"600"), *((name, text.encode()) for name, text in asked.items())]


def request_headers(headers: Headers, mount: Mount) -> list[Header]:
    """What the application is sent: it sees a request to itself, and where it is shown in ``X-Forwarded-*``."""
    kept = [
        (name, value)
        for name, value in _end_to_end(headers)
        if name not in _NOT_PASSED_IN and not name.startswith(b"x-forwarded-")
    ]
    scheme, _, host = mount.origin.partition("://")
    told = {
        b"host": mount.inner.removeprefix("http://"),
        b"origin": _inner_origin(value_of(headers, b"origin"), mount),
        b"referer": _inner_referer(value_of(headers, b"referer"), mount),
        b"x-forwarded-host": host,
        b"x-forwarded-proto": scheme,
        b"x-forwarded-prefix": mount.prefix,
    }
    way = [(b"connection", b"upgrade"), (b"upgrade", b"websocket")] if is_websocket(headers) else _CLOSE
    return [*((name, text.encode("latin-1")) for name, text in told.items() if text), *kept, *way]


_CLOSE: Final = [(b"connection", b"close")]


def response_headers(headers: Headers, mount: Mount, path: str) -> list[Header]:
    """What the browser is sent; ``path`` is what it asked for, as inside."""
    replaced = {name for name, _ in POLICY} - {b"content-security-policy"}  # another one restricts further
    if has_two_lengths(headers):
        replaced.add(b"content-length")  # the other one holds
    kept = [
        (name, value) for name, value in _end_to_end(headers) if name not in _NOT_PASSED_OUT and name not in replaced
    ]
    location = value_of(headers, b"location")
    moved = [(b"location", _outer_location(location, mount, path).encode("latin-1"))] if location else []
    return [*kept, *moved, *POLICY]


def switching_headers(headers: Headers) -> list[Header]:
    """What the browser is sent with status 101."""
    kept = [(name, value) for name, value in _end_to_end(headers) if name not in _NOT_PASSED_OUT]
    return [(b"connection", b"upgrade"), (b"upgrade", b"websocket"), *kept]


def _end_to_end(headers: Headers) -> list[Header]:
    named = _listed(headers, b"connection") | _HOP_BY_HOP
    return [(name, value) for name, value in headers if name not in named]


def _listed(headers: Headers, name: bytes) -> set[bytes]:
    return {item.strip().lower() for key, value in headers if key == name for item in value.split(b",")}


def _inner_origin(origin: str, mount: Mount) -> str:
    return mount.inner if origin in ("null", mount.origin) else origin


def _inner_referer(referer: str, mount: Mount) -> str:
    """Never another path of ours: it is somebody's capability."""
    if referer == mount.outer or referer.startswith(mount.outer + "/"):
        return mount.inner + (referer.removeprefix(mount.outer) or "/")
    return "" if referer.startswith(mount.origin) else referer


def _outer_location(location: str, mount: Mount, path: str) -> str:
    """Resolved inside before it is moved, so that no ``..`` leads out of the prefix. Other sites are left alone."""
    inside = _inside(location, mount, path)
    if inside is None:
        return location
    end = re.search(r"[?#]|$", inside)
    assert end is not None
    place = _without_dots(inside[: end.start()])
    known = place == mount.prefix or place.startswith(mount.prefix + "/")
    return ("" if known else mount.prefix) + place + inside[end.start() :]


def _inside(location: str, mount: Mount, path: str) -> str | None:
    """Its path and what follows on the application's own site; None for another one."""
    for own in (mount.inner, f"http://127.0.0.1:{mount.port}"):
        if re.match(re.escape(own) + r"(?=[/?#]|$)", location):
            return location.removeprefix(own)
    if _ELSEWHERE.match(location):
        return None
    if location.startswith("/"):
        return location
    here = path.partition("?")[0]
    return (here if location.startswith(("?", "#")) else here[: here.rindex("/") + 1]) + location


_ELSEWHERE: Final = re.compile(r"//|[A-Za-z][A-Za-z0-9+.-]*:")


def _without_dots(path: str) -> str:
    """As browsers read it: RFC 3986, 5.2.4, with encoded dots."""
    kept: list[str] = []
    dots = ""
    for segment in path.split("/")[1:]:
        dots = segment.lower().replace("%2e", ".")
        if dots == "..":
            kept[-1:] = []
        elif dots != ".":
            kept.append(segment)
    if dots in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)
