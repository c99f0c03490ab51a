"""A link to what runs in a sandbox."""

from __future__ import annotations

from dataclasses import dataclass

from yaosb_jupyter.jupyter.markup import Markup, element, page


@dataclass(frozen=True, kw_only=True, repr=False)
class PortLink:
    """``show``: the page itself is shown below the link."""

    sandbox: str
    port: int
    url: str
    show: bool = False

    def _repr_html_(self) -> Markup:
        title = element("span", f"{self.sandbox}, port {self.port}", class_="y-title")
        link = element("a", self.url, href=self.url, target="_blank", rel="noopener noreferrer")
        note = "For whoever has the link, until the sandbox stops, and at most 12 hours."
        card = element(
            "div",
            element("div", title, class_="y-head"),
            element("div", link, element("div", note, class_="y-note"), class_="y-body"),
            class_="y-card",
        )
        return page(card, *([self._frame()] if self.show else []))

    def _frame(self) -> Markup:
        # The application says the same of itself; a browser holds it to both.
        return element("iframe", src=self.url, sandbox="allow-scripts allow-forms allow-popups", class_="y-frame")

    def __repr__(self) -> str:
        return self.url
