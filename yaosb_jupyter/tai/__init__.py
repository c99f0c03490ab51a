"""One host: runtimes, volumes, and ways to what listens there. `open` gives it by its address."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yaosb_jupyter.tai.client import HostClient


async def open(
    address: str,
    options: Mapping[str, str] | None = None,
    *,
    runtime_dir: Path | None = None,
    state_dir: Path | None = None,
) -> HostClient:
    """Opens the host at ``address``, without a manager; close it, or use it by ``async with``.

    ``local`` (also ``localhost``, ``127.0.0.1``, ``::1``) is this machine's Docker engine; ``embedded`` needs none.
    ``options`` are the runtime's own, as in `PoolSpec`. Without a ``runtime_dir`` (short: sockets are in it) the host
    gets one that goes with it, and so should its environments. Raises `InvalidOptionError` for a bad address, an empty
    one too, `RuntimeUnavailableError` or `NotAvailableError` with the way out.
    """
    from yaosb_jupyter.tai.client import open_address  # loads the runtimes, and half the package is below `tai`

    return await open_address(address, options or {}, runtime_dir=runtime_dir, state_dir=state_dir)
