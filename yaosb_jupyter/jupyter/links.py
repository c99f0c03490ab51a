"""Links to what runs in a sandbox."""

from __future__ import annotations

from dataclasses import dataclass

from yaosb_jupyter.choices import VncStatus
from yaosb_jupyter.jupyter.markup import Markup, element, page
from yaosb_jupyter.types import Desktop

_FRAME = "allow-scripts allow-forms allow-popups"
_NOTE = "For whoever has the link, until the sandbox stops, and at most 12 hours."


@dataclass(frozen=True, kw_only=True, repr=False)
class PortLink:
    """``show``: the page itself is shown below the link."""

    sandbox: str
    port: int
    url: str
    show: bool = False

    def _repr_html_(self) -> Markup:
        # The application says the same of itself; a browser holds it to both.
        return _linked(f"{self.sandbox}, port {self.port}", self.url, _FRAME if self.show else "")

    def __repr__(self) -> str:
        return self.url


@dataclass(frozen=True, kw_only=True, repr=False)
class DesktopLink:
    """``show``: the desktop itself is shown below the link."""

    sandbox: str
    desktop: Desktop
    show: bool = False

    @property
    def url(self) -> str:
        """Of the page; empty where there is nothing to see."""
        return self.desktop.page

    def _repr_html_(self) -> Markup:
        if not self.url:
            return page(element("div", repr(self), class_="y-note"))
        # The page is ours and of another origin than the notebook; it opens the WebSocket under its own.
        return _linked(f"{self.sandbox}, desktop", self.url, "allow-scripts allow-same-origin" if self.show else "")

    def __repr__(self) -> str:
        return self.url or f"{self.sandbox}: {_NO_DESKTOP[self.desktop.status]}"


_NO_DESKTOP = {
    VncStatus.NOT_SUPPORTED: "there is no desktop; on Docker: yaosb image build desktop, %sandbox create NAME --vnc",
    VncStatus.UNAVAILABLE: "its desktop cannot be seen: is it running?",
}


def _linked(title: str, url: str, frame: str) -> Markup:
    """A card with the link, and what it leads to in a frame that may do what ``frame`` says; empty: no frame."""
    link = element("a", url, href=url, target="_blank", rel="noopener noreferrer")
    card = element(
        "div",
        element("div", element("span", title, class_="y-title"), class_="y-head"),
        element("div", link, element("div", _NOTE, class_="y-note"), class_="y-body"),
        class_="y-card",
    )
    shown = [element("iframe", src=url, sandbox=frame, class_="y-frame")] if frame else []
    return page(card, *shown)
