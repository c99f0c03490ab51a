"""What all environments of one runtime share."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from yaosb_jupyter.errors import RuntimeUnavailableError
from yaosb_jupyter.link.program import install_program
from yaosb_jupyter.tai.runtimes.base import EnvironmentEvent
from yaosb_jupyter.tai.runtimes.embedded.cgroups import Cgroups
from yaosb_jupyter.tai.runtimes.embedded.launchers import Launchers
from yaosb_jupyter.tai.runtimes.embedded.options import Means
from yaosb_jupyter.tai.runtimes.embedded.plan import Places
from yaosb_jupyter.tai.runtimes.embedded.record import EnvironmentRecord, RecordStore
from yaosb_jupyter.tai.runtimes.embedded.view import USER, USER_ID, HostView


@dataclass(frozen=True, kw_only=True)
class HostFiles:
    """``directory`` holds a directory with the socket of each sandbox; ``guest`` and ``accounts`` serve all."""

    directory: Path
    guest: Path
    accounts: Path

    @classmethod
    def install(cls, directory: Path) -> HostFiles:
        """In a directory whose path is short. Others may pass through it and look at nothing. Blocks.

        Raises `RuntimeUnavailableError` where the directory is somebody else's.
        """
        accounts = directory / "accounts"
        directory.mkdir(parents=True, exist_ok=True, mode=0o711)
        if directory.is_symlink() or directory.stat().st_uid != os.geteuid():
            raise RuntimeUnavailableError(f"{directory} belongs to somebody else", hint="set YAO_RUNTIME_DIR")
        directory.chmod(0o711)
        accounts.mkdir(exist_ok=True)
        accounts.chmod(0o755)
        account = f"{USER}:x:{USER_ID}:{USER_ID}:{USER}:/workspace:/bin/sh\n"
        for name, content in (
            ("passwd", f"root:x:0:0:root:/root:/bin/sh\n{account}"),
            ("group", f"root:x:0:\n{USER}:x:{USER_ID}:\n"),
        ):
            (accounts / name).write_text(content)
            (accounts / name).chmod(0o644)
        return cls(directory=directory, guest=install_program(directory), accounts=accounts)

    def restore(self) -> None:
        """Puts them back where something cleaned them away: directories of temporary files are. Blocks."""
        if not (self.guest.exists() and self.accounts.exists()):
            self.install(self.directory)

    def remove(self) -> None:
        """What no sandbox needs any more. What else is in the directory stays, and it as well then. Blocks."""
        for program in self.directory.glob("guest-*"):
            program.unlink(missing_ok=True)
        shutil.rmtree(self.accounts, ignore_errors=True)
        with suppress(OSError):
            self.directory.rmdir()

    @classmethod
    def passable(cls, runtime_dir: Path) -> HostFiles:
        """Where a user that a root daemon drops to can get at them: the daemon's own directory is closed to others."""
        run = Path("/run")
        base = run if run.is_dir() and os.access(run, os.W_OK) else Path(tempfile.gettempdir())
        digest = hashlib.sha256(os.fsencode(runtime_dir.absolute())).hexdigest()[:12]
        return cls.install(base / f"yaosb-{digest}")


@dataclass(frozen=True, kw_only=True)
class EmbeddedHost:
    """How sandboxes are kept in here, and where their things are."""

    means: Means
    view: HostView
    bwrap: str
    files: HostFiles
    store: RecordStore
    cgroups: Cgroups | None
    launchers: Launchers
    tell: Callable[[EnvironmentEvent], None]

    def places(self, record: EnvironmentRecord) -> Places:
        return Places(
            link_directory=self.files.directory / record.runtime_id,
            temporary=record.spec.directory / "run" / "tmp",
            guest=self.files.guest,
            accounts=self.files.accounts,
        )
