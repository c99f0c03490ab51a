"""Which images there are, and the name that tells what one was made of. Reads only this package's own files."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from yaosb_jupyter.errors import NotFoundError
from yaosb_jupyter.version import __version__

REPOSITORY: Final = "yaosb"
ENTRYPOINT_LABEL: Final = "yaosb.entrypoint"
"""On an image: the program to run at a sandbox's start, which becomes the command that it is given, if any."""
VNC_LABEL: Final = "yaosb.vnc"
"""On an image: the port inside where its desktop is shown."""

_HERE = Path(__file__).parent
_DOCKERFILE = "Dockerfile"
_REQUIREMENTS = "requirements.txt"
_NOT_FOR_THE_BUILD = frozenset({"requirements.in", "__pycache__"})


@dataclass(frozen=True, kw_only=True)
class Image:
    """One image of ours, made on top of ``base``, or of Debian's where that is None."""

    name: str
    does: str
    base: Image | None = None

    @property
    def files(self) -> dict[str, Path]:
        """What its build gets, by name."""
        found = sorted((_HERE / self.name).iterdir())
        return {path.name: path for path in found if path.name not in _NOT_FOR_THE_BUILD}

    @property
    def dockerfile(self) -> str:
        return self.files[_DOCKERFILE].read_text(encoding="utf-8")

    @property
    def requirements(self) -> Path | None:
        """The Python packages it needs, each with its hashes; None where it needs none."""
        return self.files.get(_REQUIREMENTS)

    @property
    def lineage(self) -> tuple[Image, ...]:
        """What is to be built for it, in order; itself the last."""
        return (*(self.base.lineage if self.base else ()), self)

    @property
    def short_name(self) -> str:
        """Names the latest that was built, whatever its content."""
        return f"{REPOSITORY}/sandbox-{self.name}:latest"

    @property
    def tag(self) -> str:
        """The package's version and what the image is made of: equal inputs give equal tags on every machine."""
        version = re.sub(r"[^A-Za-z0-9_.-]", "-", __version__)
        return f"{version}-{_digest(self)}"

    @property
    def full_name(self) -> str:
        return f"{REPOSITORY}/sandbox-{self.name}:{self.tag}"


@cache
def _digest(image: Image) -> str:
    content = hashlib.sha256()
    if image.base is not None:
        content.update(_digest(image.base).encode())
    for name, path in image.files.items():
        data = path.read_bytes()
        content.update(f"{name}\0{len(data)}\0".encode() + data)
    return content.hexdigest()[:12]


BASE: Final = Image(name="base", does="Python and pip; what sandboxes are made from by default")
TEST: Final = Image(name="test", does="WebSocket echo and server-sent events behind nginx", base=BASE)
DESKTOP: Final = Image(name="desktop", does="a desktop to look at over VNC", base=BASE)
DATA: Final = Image(name="data", does="numpy, pandas, matplotlib, scikit-learn, ipykernel", base=BASE)
IMAGES: Final = {image.name: image for image in (BASE, TEST, DESKTOP, DATA)}


def image_named(name: str) -> Image:
    """Raises `NotFoundError` telling the names there are."""
    try:
        return IMAGES[name]
    except KeyError:
        raise NotFoundError(f"there is no image {name!r} to build", hint=f"known: {', '.join(IMAGES)}") from None
