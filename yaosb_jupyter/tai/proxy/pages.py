"""What the proxy itself has to say, to people and to programs."""

from __future__ import annotations

import html
from dataclasses import dataclass

from yaosb_jupyter.errors import (
    NotAvailableError,
    NotFoundError,
    NotRunningError,
    PortUnavailableError,
    RuntimeUnavailableError,
    SandboxError,
)
from yaosb_jupyter.tai.http import MAX_HEAD


@dataclass(frozen=True, kw_only=True)
class Page:
    """``status`` as in HTTP; ``hint`` what to do next."""

    status: int
    title: str
    message: str
    hint: str = ""

    def text(self) -> str:
        return "\n".join(part for part in (self.title, self.message, self.hint) if part) + "\n"

    def html(self) -> str:
        """All that a sandbox may have said is escaped."""
        title, message, hint = (html.escape(part) for part in (self.title, self.message, self.hint))
        return _HTML.format(title=title, message=message, hint=f"<p class=hint>{hint}</p>" if hint else "")


_HTML = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><style>
:root{{color-scheme:light dark}}
body{{font:16px/1.5 system-ui,sans-serif;margin:15vh auto 0;padding:0 24px;max-width:38em}}
h1{{font-size:1.35em;margin:0 0 .4em}}p{{margin:0 0 .6em;overflow-wrap:anywhere}}.hint{{opacity:.65}}
</style></head><body><h1>{title}</h1><p>{message}</p>{hint}</body></html>
"""

UNKNOWN = Page(
    status=404,
    title="This link leads nowhere",
    message="Its time is over, or its sandbox was stopped or removed.",
    hint="Ask for it again: sandbox.proxy(PORT), or %sandbox proxy PORT in the notebook.",
)
STRANGE_HOST = Page(
    status=421,
    title="Not under this name",
    message="This address answers to 127.0.0.1 and localhost only, so that no other site can pass for it.",
)
BAD_REQUEST = Page(status=400, title="Not understood", message="This is no request that can be passed on.")
HEAD_TOO_LARGE = Page(
    status=431,
    title="Too long a head",
    message=f"The path and the headers of a request are passed on up to {MAX_HEAD // 1024} KiB.",
)
TOO_MANY = Page(status=503, title="Too many connections", message="Some must end first.", hint="Try again in a moment.")


def for_error(error: SandboxError, port: int) -> Page:
    """Why a sandbox's port could not be reached."""
    hint = error.hint or ""
    name = f"sandbox {error.sandbox}" if error.sandbox else "the sandbox"
    match error:
        case PortUnavailableError():
            return Page(
                status=502,
                title=f"Nothing answers at port {port} of {name}",
                message=_capital(error.message),
                hint="Start a server there, then load this page again.",
            )
        case NotFoundError():
            return Page(status=410, title=f"{_capital(name)} is gone", message=error.message, hint=hint)
        case NotRunningError() | NotAvailableError():
            return Page(status=503, title=f"{_capital(name)} cannot be reached", message=error.message, hint=hint)
        case RuntimeUnavailableError():
            return Page(status=504, title=f"{_capital(name)} does not answer", message=error.message, hint=hint)
    return Page(status=502, title=f"Port {port} of {name} cannot be reached", message=error.message, hint=hint)


def broken(port: int, name: str, why: str) -> Page:
    return Page(
        status=502,
        title=f"No answer that can be shown from port {port} of sandbox {name}",
        message=f"What listens there does not speak HTTP as it should: {why}",
        hint="For other protocols: sandbox.dial(PORT), sandbox.attach(PORT, 'tcp').",
    )


def unanswered(port: int, name: str) -> Page:
    return Page(
        status=502,
        title=f"No answer from port {port} of sandbox {name}",
        message="What listens there closed the connection without an answer.",
        hint="Look at what the server writes. For other protocols: sandbox.dial(PORT), sandbox.attach(PORT, 'tcp').",
    )


def late(port: int, name: str, seconds: float) -> Page:
    return Page(
        status=504,
        title=f"No answer from port {port} of sandbox {name}",
        message=f"Something listens there, and did not answer within {seconds:g} seconds.",
        hint="Look at what the server writes: it may be busy, or stuck.",
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
