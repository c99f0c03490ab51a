"""What an engine gets to build an image from: a tar that is the same for the same files."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import IO

from yaosb_jupyter.images.catalogue import Image

_WHEELS = "wheels"


def write_context(image: Image, wheels: Path | None, target: IO[bytes]) -> None:
    """``wheels``: a directory of them, or None."""
    with tarfile.open(fileobj=target, mode="w") as tar:
        for name, path in image.files.items():
            _add(tar, name, path)
        if wheels is not None:
            _add(tar, _WHEELS, wheels)
            for path in sorted(wheels.iterdir()):
                _add(tar, f"{_WHEELS}/{path.name}", path)


def _add(tar: tarfile.TarFile, name: str, path: Path) -> None:
    """Root's, without a time; scripts can be run, however this package was installed."""
    entry = tarfile.TarInfo(name)
    if path.is_dir():
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(entry)
        return
    with path.open("rb") as file:
        entry.mode = 0o755 if file.read(2) == b"#!" else 0o644
        entry.size = file.seek(0, 2)
        file.seek(0)
        tar.addfile(entry, file)
