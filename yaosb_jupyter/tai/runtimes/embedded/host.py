"""What all environments of one runtime share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from yaosb_jupyter.link.blob import install_blob
from yaosb_jupyter.tai.runtimes.base import EnvironmentEvent
from yaosb_jupyter.tai.runtimes.embedded.cgroups import Cgroups
from yaosb_jupyter.tai.runtimes.embedded.options import Means
from yaosb_jupyter.tai.runtimes.embedded.plan import Places
from yaosb_jupyter.tai.runtimes.embedded.record import EnvironmentRecord, RecordStore
from yaosb_jupyter.tai.runtimes.embedded.view import USER, USER_ID, HostView


@dataclass(frozen=True, kw_only=True)
class HostFiles:
    """Files for all sandboxes: the guest, and the accounts that they see."""

    sockets: Path
    guest: Path
    accounts: Path

    @classmethod
    def install(cls, directory: Path) -> HostFiles:
        """In a directory whose path is short. Others may pass through it and look at nothing. Blocks."""
        sockets, accounts = directory / "e", directory / "accounts"
        for made in (directory, sockets, accounts):
            made.mkdir(parents=True, exist_ok=True, mode=0o711)
        for made, mode in ((directory, 0o711), (sockets, 0o711), (accounts, 0o755)):
            made.chmod(mode)
        account = f"{USER}:x:{USER_ID}:{USER_ID}:{USER}:/workspace:/bin/sh\n"
        (accounts / "passwd").write_text(f"root:x:0:0:root:/root:/bin/sh\n{account}")
        (accounts / "group").write_text(f"root:x:0:\n{USER}:x:{USER_ID}:\n")
        return cls(sockets=sockets, guest=install_blob(directory, compiled=True), accounts=accounts)


@dataclass(frozen=True, kw_only=True)
class EmbeddedHost:
    """How sandboxes are kept in here, and where their things are."""

    means: Means
    view: HostView
    bwrap: str
    files: HostFiles
    store: RecordStore
    cgroups: Cgroups | None
    tell: Callable[[EnvironmentEvent], None]

    def places(self, record: EnvironmentRecord) -> Places:
        return Places(
            link_directory=self.files.sockets / record.runtime_id,
            temporary=record.spec.directory / "run" / "tmp",
            guest=self.files.guest,
            accounts=self.files.accounts,
        )
