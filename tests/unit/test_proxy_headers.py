"""Which headers pass through the proxy: pure rules (DESIGN 9)."""

from __future__ import annotations

import pytest

from yaosb_jupyter.tai.proxy.headers import (
    Mount,
    is_preflight,
    is_websocket,
    request_headers,
    response_headers,
    switching_headers,
)

TOKEN = "t" * 43
MOUNT = Mount(origin="http://127.0.0.1:4000", prefix=f"/{TOKEN}", port=8080)


def sent(**headers: str) -> dict[bytes, bytes]:
    return dict(request_headers(raw(headers), MOUNT))


def shown(path: str = "/", **headers: str) -> list[tuple[bytes, bytes]]:
    return response_headers(raw(headers), MOUNT, path)


def raw(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]


def test_the_application_sees_a_request_to_itself() -> None:
    headers = sent(host="127.0.0.1:4000", accept="text/html", x_forwarded_for="1.2.3.4", forwarded="for=x")
    assert headers == {
        b"host": b"localhost:8080",
        b"x-forwarded-host": b"127.0.0.1:4000",
        b"x-forwarded-proto": b"http",
        b"x-forwarded-prefix": f"/{TOKEN}".encode(),
        b"accept": b"text/html",
        b"connection": b"close",
    }


def test_cookies_of_other_ports_of_this_host_do_not_reach_it() -> None:
    assert b"cookie" not in sent(cookie="username-127-0-0-1-8888=the-notebook-servers")


@pytest.mark.parametrize(
    ("origin", "inner"),
    [
        ("null", "http://localhost:8080"),
        ("http://127.0.0.1:4000", "http://localhost:8080"),
        ("http://example.org", "http://example.org"),
    ],
)
def test_its_own_page_has_its_own_origin(origin: str, inner: str) -> None:
    assert sent(origin=origin)[b"origin"] == inner.encode()


def test_a_referer_is_told_as_inside_and_never_tells_another_sandboxs_path() -> None:
    assert sent(referer=f"{MOUNT.outer}/a?b")[b"referer"] == b"http://localhost:8080/a?b"
    assert b"referer" not in sent(referer=f"http://127.0.0.1:4000/{'u' * 43}/")
    assert b"referer" not in sent(referer=f"{MOUNT.outer}more/")


def test_what_is_for_one_connection_stays_there() -> None:
    headers = sent(connection="keep-alive, x-mine", keep_alive="5", x_mine="1", te="trailers", upgrade="h2c")
    assert headers[b"connection"] == b"close"
    assert not {b"keep-alive", b"x-mine", b"te", b"upgrade"} & headers.keys()


def test_a_websocket_is_asked_for_as_one() -> None:
    headers = raw({"connection": "keep-alive, Upgrade", "upgrade": "WebSocket", "sec-websocket-protocol": "a, b"})
    assert is_websocket(headers)
    passed = dict(request_headers(headers, MOUNT))
    assert (passed[b"connection"], passed[b"upgrade"]) == (b"upgrade", b"websocket")
    assert passed[b"sec-websocket-protocol"] == b"a, b"
    assert not is_websocket(raw({"connection": "upgrade", "upgrade": "h2c"}))


def test_every_response_gets_an_origin_of_its_own() -> None:
    headers = shown(content_type="text/html")
    assert (b"content-security-policy", b"sandbox allow-scripts allow-forms allow-popups") in headers
    assert (b"access-control-allow-origin", b"null") in headers
    assert (b"x-content-type-options", b"nosniff") in headers
    assert (b"referrer-policy", b"same-origin") in headers


def test_the_application_cannot_loosen_it() -> None:
    headers = shown(
        access_control_allow_origin="*", x_content_type_options="no", referrer_policy="unsafe-url", connection="x"
    )
    names = [name for name, _ in headers]
    assert len(names) == len(set(names))
    assert (b"access-control-allow-origin", b"null") in headers
    policies = [value for name, value in shown(content_security_policy="default-src 'self'") if b"security" in name]
    assert policies == [b"default-src 'self'", b"sandbox allow-scripts allow-forms allow-popups"]


@pytest.mark.parametrize(
    "name",
    ["set-cookie", "clear-site-data", "strict-transport-security", "service-worker-allowed", "nel", "x-frame-options"],
)
def test_what_would_hold_for_the_whole_host_is_dropped(name: str) -> None:
    assert name.encode() not in dict(response_headers([(name.encode(), b"value")], MOUNT, "/"))
    assert name.encode() not in dict(switching_headers([(name.encode(), b"value")]))


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ("/login", f"/{TOKEN}/login"),
        ("http://localhost:8080/a?b#c", f"/{TOKEN}/a?b#c"),
        ("http://127.0.0.1:8080", f"/{TOKEN}/"),
        (f"/{TOKEN}/login", f"/{TOKEN}/login"),  # it knows X-Forwarded-Prefix
        (f"/{TOKEN}", f"/{TOKEN}"),
        (f"/{TOKEN}/../login", f"/{TOKEN}/login"),
        ("login", f"/{TOKEN}/a/login"),
        ("./", f"/{TOKEN}/a/"),
        ("..", f"/{TOKEN}/"),
        ("../../x?back=/../y#z", f"/{TOKEN}/x?back=/../y#z"),
        ("%2E%2e/.%2e/x", f"/{TOKEN}/x"),
        ("/..//example.org/", f"/{TOKEN}//example.org/"),
        ("http://localhost:8080/../x", f"/{TOKEN}/x"),
        ("http://localhost:8080?q", f"/{TOKEN}/?q"),
        ("?r=2", f"/{TOKEN}/a/b?r=2"),
        ("#z", f"/{TOKEN}/a/b#z"),
        ("http://[", "http://["),
        ("http://localhost:80800/", "http://localhost:80800/"),
        ("https://example.org/", "https://example.org/"),
        ("//example.org/", "//example.org/"),
    ],
)
def test_redirects_stay_below_the_prefix(inside: str, outside: str) -> None:
    """They are of /a/b?q."""
    assert dict(shown("/a/b?q=/c/d", location=inside))[b"location"] == outside.encode()


def test_of_two_ways_to_tell_a_responses_length_one_is_passed() -> None:
    assert b"content-length" not in dict(shown(content_length="5", transfer_encoding="chunked"))
    assert dict(shown(content_length="5"))[b"content-length"] == b"5"


def test_a_preflight_is_one() -> None:
    assert is_preflight(b"OPTIONS", raw({"origin": "null", "access-control-request-method": "PUT"}))
    assert not is_preflight(b"OPTIONS", raw({"origin": "null"}))
