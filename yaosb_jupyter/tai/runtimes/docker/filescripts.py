"""Our scripts on the files of a workspace, run where they are, and what these say as errors of ours."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from yaosb_jupyter.errors import SandboxError, UnavailableError
from yaosb_jupyter.tai.volumes.paths import path_error

MOVE = 'while [ $# -gt 0 ]; do mv -fT -- "$1" "$2" || exit 1; shift 2; done'
"""Each of some paths to the one behind it."""
REMOVE = 'rm -rf -- "$@"'
READ_LINK = '[ ! -h "$1" ] || readlink -n -- "$1"'
LIST = """
cd -- "$1" 2> /dev/null || exit 0
pwd -P
printf '\\0'
for name in * .[!.]* ..?*; do
    if [ -h "$name" ]; then
        printf '%s\\0' "$name" "$(readlink -- "$name")"
    elif [ -e "$name" ]; then
        printf '%s\\0\\0' "$name"
    fi
done
exit 0
"""
"""Says where it is, links resolved, then each name and what it is a link to. Nothing where it cannot go there."""

_SAID = {
    os.strerror(number): number
    for number in (
        errno.EACCES,
        errno.EPERM,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ENOTEMPTY,
        errno.ENAMETOOLONG,
        errno.ELOOP,
        errno.EBUSY,
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
    )
}


def failure(path: str, said: bytes) -> SandboxError:
    """Of a script that did not do what it is for with ``path``, by what it wrote to standard error."""
    text = said.decode(errors="replace").strip()
    for end, number in _SAID.items():
        if text.lower().endswith(end.lower()):
            return path_error(number, path)
    return UnavailableError(f"{path!r}: a script in its container failed", hint=f"it says: {text[-300:]}")


def told_by_list(output: bytes, place: str) -> Sequence[tuple[str, str]] | None:
    """Names and targets that `LIST` has told of ``place``; None where it was elsewhere, or nowhere."""
    where, _, rest = output.decode(errors="surrogateescape").partition("\0")
    if where.removesuffix("\n") != place:
        return None
    told = rest.split("\0")[:-1]
    return list(zip(told[::2], told[1::2], strict=False))
