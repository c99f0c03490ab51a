"""How much a copy may bring to this machine: a sandbox decides what it sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from yaosb_jupyter.checks import check_number
from yaosb_jupyter.errors import LimitExceededError
from yaosb_jupyter.units import SizeLike, format_size, parse_size

MAX_SIZE: SizeLike = "16g"
MAX_FILES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class CopyLimits:
    """``size`` bytes in all, in ``files`` files and directories; ``sandbox`` is named in errors."""

    size: int
    files: int
    sandbox: str = ""

    @classmethod
    def of(cls, max_size: SizeLike, max_files: int, *, sandbox: str) -> Self:
        """Raises `InvalidOptionError`."""
        check_number("max_files", max_files, 1, 2**63 - 1)
        return cls(size=parse_size(max_size, "max_size"), files=max_files, sandbox=sandbox)

    def check(self, size: int, files: int) -> None:
        """Raises `LimitExceededError`, before anything is written where the sender tells the truth."""
        if size > self.size:
            raise LimitExceededError(
                f"what comes is more than {format_size(self.size)}",
                sandbox=self.sandbox or None,
                hint="copy a part of it, or allow more: max_size (%sandbox cp --max-size)",
            )
        if files > self.files:
            raise LimitExceededError(
                f"what comes is more than {self.files} files",
                sandbox=self.sandbox or None,
                hint="pack them into one inside, or allow more: max_files",
            )
