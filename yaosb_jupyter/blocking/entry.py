"""The blocking way in: `connect`, and the one manager of this process."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, Unpack

from yaosb_jupyter.blocking.loop import background
from yaosb_jupyter.blocking.manager import Manager
from yaosb_jupyter.daemon.connect import connect_async
from yaosb_jupyter.errors import AlreadyExistsError
from yaosb_jupyter.options import CreateFields, CreateOptions


def connect(data_dir: Path | str | None = None, **defaults: Unpack[CreateFields]) -> Manager:
    """A manager over the daemon of a data directory (default: ``YAO_DATA_DIR``, else the user's), started if need be.

    ``defaults`` are for each ``create`` of this manager; all else is configured by the daemon's environment and file.
    Raises `NotAvailableError` and what keeps the daemon from starting, `AuthError`, `InvalidOptionError`.
    """
    loop = background()
    return Manager(loop, loop.run(lambda: connect_async(data_dir, **defaults)))


_lock = threading.Lock()
_current: tuple[Manager, tuple[Any, ...]] | None = None


def init(data_dir: Path | str | None = None, **defaults: Unpack[CreateFields]) -> Manager:
    """Connects the manager of this process, as `connect` does; again with the same settings it is the same one.

    Raises `AlreadyExistsError` where it was connected with other settings.
    """
    global _current
    settings = (None if data_dir is None else Path(data_dir).expanduser().absolute(), CreateOptions.of(**defaults))
    with _lock:
        if _current is None:
            _current = (connect(data_dir, **defaults), settings)
        if _current[1] != settings:
            raise AlreadyExistsError(
                "the manager of this process was made with other settings",
                hint="manager() gives it; connect() makes one of your own",
            )
        return _current[0]


def manager() -> Manager:
    """The manager of this process; connects with the default settings where `init` was not called."""
    with _lock:
        if _current is not None:
            return _current[0]
    return init()


def _forget() -> None:
    """A forked process connects for itself."""
    global _current, _lock
    _lock = threading.Lock()
    _current = None


os.register_at_fork(after_in_child=_forget)
