"""The small protocol that every way of running things is measured through.

All calls block. What one does not offer stays as it is here, and its cell says so. Everything runs in one container,
`Place.container`, wherever it can be joined from outside.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from benchmarks.harness import NotOfferedError

PIECE = 2**20


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a run happens.

    ``name`` the adapter's, as part of a path; ``container`` the running one to join; ``root`` a directory of the run's.
    """

    name: str
    image: str
    container: str
    root: Path


@dataclass(frozen=True, kw_only=True)
class Drained:
    """Output that has gone through the caller's hands.

    ``size`` in bytes, or characters of text; ``exit_code`` None where it cannot be learnt.
    """

    size: int
    exit_code: int | None


class Adapter(ABC):
    """One way of running things.

    ``joins``: it works in a container that is there already. ``output_share`` and ``file_share``: the part of a row's
    bytes that it is given, because it is too slow for all of them or loses some; the time is scaled up.
    """

    joins: ClassVar[bool] = False
    output_share: ClassVar[float] = 1.0
    file_share: ClassVar[float] = 1.0

    def __init__(self, place: Place) -> None:
        self.place = place

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def open(self) -> None:
        """What a user does once, before the first command."""

    def close(self) -> None:
        """Removes what `open` made."""

    @abstractmethod
    def run(self, argv: Sequence[str]) -> int:
        """Runs a command to its end, its output collected; the exit code."""

    def run_many(self, argv: Sequence[str], count: int) -> Sequence[int]:
        """As many at once, by threads unless there is a better way."""
        with ThreadPoolExecutor(count) as threads:
            return list(threads.map(self.run, [argv] * count))

    def first_output(self, argv: Sequence[str]) -> float:
        """Seconds until the caller holds the first output of a command; it is run to its end after that."""
        raise NotOfferedError("no such call")

    def drain(self, argv: Sequence[str], *, text: bool) -> Drained:
        """All output of a command, as it comes where that is possible, stderr apart."""
        raise NotOfferedError("no such call")

    def put_file(self, source: Path, target: str) -> None:
        """A file of the host to an absolute path inside."""
        raise NotOfferedError("no such call")

    def get_file(self, source: str, target: Path) -> None:
        raise NotOfferedError("no such call")

    def put_tree(self, source: Path, target: str) -> None:
        """A directory of the host as ``target``, which does not exist yet."""
        raise NotOfferedError("no such call")

    def get_tree(self, source: str, target: Path) -> None:
        raise NotOfferedError("no such call")

    def holds(self, path: str, *, size: int, count: int) -> bool:
        """Whether there are ``count`` files of ``size`` bytes at or below an absolute path inside."""
        script = 'test "$(find "$1" -type f -size "$2"c | wc -l)" -eq "$3"'
        return self.run(["sh", "-c", script, "sh", path, str(size), str(count)]) == 0

    def first_result(self) -> float:
        """Seconds from nothing to the result of ``true`` in a new environment, which is removed after that."""
        raise NotOfferedError("no such call")

    def removal(self, *, stubborn: bool) -> float:
        """Seconds to remove a running environment made for this; ``stubborn``: its main process ignores SIGTERM."""
        raise NotOfferedError("no such call")
