"""Every error the package raises.

::

    SandboxError
    ├── NotFoundError                 no such sandbox, file or process (also: another owner's)
    │   ├── PoolNotFoundError
    │   ├── ImageNotFoundError
    │   ├── PathNotFoundError         (also a FileNotFoundError) no such file in a workspace
    │   └── SandboxLostError          it was there and vanished while being used
    ├── AlreadyExistsError
    ├── NotRunningError
    ├── LimitExceededError
    ├── PoolInUseError
    ├── InvalidOptionError            (also a ValueError) a bad argument, named
    ├── ExecError
    │   ├── CommandNotFoundError      no such command, directory or user; not executable
    │   ├── ExecTimeoutError          (also a TimeoutError)
    │   ├── ExecFailedError           ended with a non-zero code and ``check`` was asked for
    │   └── OutputLimitExceededError
    ├── PathError                     a path that leaves the workspace or is not what was expected
    │   ├── PathExistsError           (also a FileExistsError)
    │   ├── PathIsDirectoryError      (also an IsADirectoryError)
    │   ├── PathLinkError             (also an OSError) a link that leads out of the workspace, or in a circle
    │   └── PathNotDirectoryError     (also a NotADirectoryError)
    ├── UnavailableError
    │   ├── NotAvailableError         no manager, no usable pool, a missing extra
    │   ├── RuntimeUnavailableError   the engine of one pool does not answer
    │   ├── PortUnavailableError      nothing listens at a port of the sandbox, or it broke the connection
    │   └── DataDirectoryBusyError    another manager owns the data directory
    ├── ProtocolError
    ├── AuthError
    └── PermissionDeniedError

An error tells what happened, to which sandbox or pool, and what to do next (``hint``).
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yaosb_jupyter.types import ExecResult


class SandboxError(Exception):
    """Root of all errors.

    ``message`` says what happened, ``sandbox`` and ``pool`` where, ``hint`` what to do next.
    """

    def __init__(
        self,
        message: str,
        *,
        sandbox: str | None = None,
        pool: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.sandbox = sandbox
        self.pool = pool
        self.hint = hint

    def __str__(self) -> str:
        where = [f"sandbox {self.sandbox!r}" if self.sandbox else "", f"pool {self.pool!r}" if self.pool else ""]
        prefix = ", ".join(part for part in where if part)
        text = f"{prefix}: {self.message}" if prefix else self.message
        return f"{text} ({self.hint})" if self.hint else text

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, {k: v for k, v in vars(self).items() if k != "message"})


def _rebuild(cls: type[SandboxError], message: str, state: dict[str, Any]) -> SandboxError:
    error = cls.__new__(cls)
    SandboxError.__init__(error, message)
    vars(error).update(state)
    return error


class NotFoundError(SandboxError):
    """Nothing of that name is known to the caller."""


class PoolNotFoundError(NotFoundError):
    """No pool of that name is configured."""


class ImageNotFoundError(NotFoundError):
    """The image is neither on the host nor can it be pulled."""


class PathNotFoundError(NotFoundError, FileNotFoundError):
    """There is no such file or directory in the workspace, or at the other end of a copy."""

    errno = errno.ENOENT


class SandboxLostError(NotFoundError):
    """The sandbox vanished while it was being used."""


class AlreadyExistsError(SandboxError):
    """The owner has a sandbox (or the manager a pool) of that name already."""


class NotRunningError(SandboxError):
    """The call needs a running sandbox."""


class LimitExceededError(SandboxError):
    """A limit on sandboxes is reached (a pool's, the manager's), on a sandbox's processes, or on what a copy brings."""


class PoolInUseError(SandboxError):
    """The pool still has sandboxes."""


class InvalidOptionError(SandboxError, ValueError):
    """A bad argument; the message names the field and what is accepted."""


class ExecError(SandboxError):
    """A command did not run to a good end."""


class CommandNotFoundError(ExecError):
    """The command could not be started: ``exit_code`` is 127 (no such command) or 126 (found, not startable)."""

    def __init__(
        self, message: str, *, exit_code: int = 127, sandbox: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, sandbox=sandbox, hint=hint)
        self.exit_code = exit_code


class _ResultError(ExecError):
    def __init__(
        self,
        message: str,
        *,
        result: ExecResult[Any] | None = None,
        sandbox: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, sandbox=sandbox, hint=hint)
        self.result = result


class ExecTimeoutError(_ResultError, TimeoutError):
    """The command ran longer than its timeout and was killed; ``result`` holds what it wrote."""


class ExecFailedError(_ResultError):
    """The command ended with a non-zero exit code; ``result`` holds code and output."""


class OutputLimitExceededError(_ResultError):
    """The command wrote more than the caller allowed and was killed; ``result`` holds what was kept."""


class PathError(SandboxError):
    """The path leaves the workspace, or is not what was expected there."""


class PathExistsError(PathError, FileExistsError):
    """There is something of that name already."""

    errno = errno.EEXIST


class PathIsDirectoryError(PathError, IsADirectoryError):
    """A file was expected."""

    errno = errno.EISDIR


class PathLinkError(PathError, OSError):
    """A link on the path leads out of the workspace, or in a circle: here, it leads nowhere."""

    errno = errno.ELOOP


class PathNotDirectoryError(PathError, NotADirectoryError):
    """A directory was expected, there or further up on the path."""

    errno = errno.ENOTDIR


class UnavailableError(SandboxError):
    """Something needed does not answer."""


class NotAvailableError(UnavailableError):
    """No manager or no usable pool, or an optional dependency is missing."""


class RuntimeUnavailableError(UnavailableError):
    """The engine behind a pool does not answer."""


class PortUnavailableError(UnavailableError):
    """Nothing listens at a port of the sandbox, or what did broke the connection."""


class DataDirectoryBusyError(UnavailableError):
    """Another manager owns the data directory."""


class ProtocolError(SandboxError):
    """The other side broke the protocol."""


class AuthError(SandboxError):
    """The credential is missing, wrong or expired."""


class PermissionDeniedError(SandboxError):
    """The credential does not allow this."""


def missing_extra(extra: str, purpose: str) -> NotAvailableError:
    """The error for an optional dependency that is not installed."""
    return NotAvailableError(
        f"{purpose} needs packages that are not installed", hint=f"pip install 'yaosb-jupyter[{extra}]'"
    )
