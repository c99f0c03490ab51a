"""Errors of runtimes in the words of their callers, who know a sandbox by its id."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.types import SandboxRecord


class Named(Protocol):
    @property
    def record(self) -> SandboxRecord: ...


@contextmanager
def naming(entry: Named) -> Iterator[None]:
    """What the body raises names the sandbox by its id."""
    try:
        yield
    except SandboxError as error:
        name_by_id(error, entry.record)
        raise


def name_by_id(error: SandboxError, record: SandboxRecord) -> None:
    """Puts the id in place of what the runtime calls the environment; paths that hold that name are left alone."""
    error.sandbox = record.id
    for internal in (record.runtime_id, record.name):
        if internal:
            error.message = re.sub(
                rf"(?<![\w/.-])/?{re.escape(internal)}(?![\w/.-])", lambda _: record.id, error.message
            )
