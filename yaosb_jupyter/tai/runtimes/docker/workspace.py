"""The host's side of a sandbox's files: directories with the right owner, and their removal."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from yaosb_jupyter.guest.removal import remove_tree
from yaosb_jupyter.tai.runtimes.docker.users import Identity

_ENVIRONMENT = "environment.json"
_MAIN_ENVIRONMENT = "environment.sh"
_KEY = "link.key"


def prepare(workspace: Path, *, own: bool, identity: Identity) -> None:
    """Makes the workspace and hands it to the sandbox's user, where it is the sandbox's own."""
    if not own:
        return
    workspace.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        os.chown(workspace, identity.uid, identity.gid)
        workspace.chmod(0o755)
    elif identity.uid not in (0, os.geteuid()):
        workspace.chmod(0o777)  # below a directory that is ours alone


def owner(directory: Path) -> tuple[int, int]:
    """Root's ids where it does not exist."""
    try:
        found = directory.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_uid, found.st_gid


def run_directory(directory: Path) -> Path:
    """What a sandbox is shown of its own directory besides the workspace, read-only."""
    return directory / "run"


def save_environment(directory: Path, env: Mapping[str, str]) -> None:
    """Keeps what every command gets; the engine is not told."""
    run = run_directory(directory)
    run.mkdir(parents=True, exist_ok=True)
    _write_private(run / _ENVIRONMENT, json.dumps(dict(env)).encode())


def load_environment(directory: Path) -> dict[str, str]:
    """Empty where there is none."""
    try:
        found = json.loads((run_directory(directory) / _ENVIRONMENT).read_text())
    except (OSError, ValueError):
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def save_main_environment(directory: Path, script: bytes, identity: Identity) -> None:
    """For a main process that is not ours: a script that its wrapper reads."""
    path = run_directory(directory) / _MAIN_ENVIRONMENT
    _write_private(path, script)
    if os.geteuid() == 0:
        os.chown(path, identity.uid, identity.gid)
    elif identity.uid != os.geteuid():
        path.chmod(0o644)


def environment_script(env: Mapping[str, str]) -> bytes:
    """``export`` lines for sh."""
    lines = (f"export {name}='{value.replace(chr(39), _QUOTE)}'\n" for name, value in env.items())
    return "".join(lines).encode()


_QUOTE = "'\\''"


def save_key(directory: Path, key: str) -> None:
    """Of the link; outside of ``run``, which is shown inside."""
    directory.mkdir(parents=True, exist_ok=True)
    _write_private(directory / _KEY, key.encode())


def load_key(directory: Path) -> str:
    """Empty where there is none."""
    try:
        return (directory / _KEY).read_text()
    except OSError:
        return ""


def save_guest(directory: Path, blob: bytes) -> None:
    path = run_directory(directory) / "guest.pyz"
    _write_private(path, blob)
    path.chmod(0o644)


def _write_private(path: Path, content: bytes) -> None:
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
    new.replace(path)


def remove(workspace: Path) -> bool:
    """Removes the directory; False where some files may only be removed by the engine. No-op when gone."""
    try:
        parent = os.open(workspace.parent, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return True
    try:
        remove_tree(parent, workspace.name)
    except FileNotFoundError:
        return True
    except PermissionError:
        return False
    finally:
        os.close(parent)
    return True
