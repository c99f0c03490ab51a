"""Sandboxes for notebooks: run code somewhere else, safely.

What does the work is imported when it is first used, so that importing the package costs a notebook next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from yaosb_jupyter.choices import ExecChannel, Lifecycle, Network, Status, VncStatus
from yaosb_jupyter.errors import (
    AlreadyExistsError,
    AuthError,
    CommandNotFoundError,
    DataDirectoryBusyError,
    ExecError,
    ExecFailedError,
    ExecTimeoutError,
    ImageNotFoundError,
    InvalidOptionError,
    LimitExceededError,
    NotAvailableError,
    NotFoundError,
    NotRunningError,
    OutputLimitExceededError,
    PathError,
    PathExistsError,
    PathIsDirectoryError,
    PathLinkError,
    PathNotDirectoryError,
    PathNotFoundError,
    PermissionDeniedError,
    PoolInUseError,
    PoolNotFoundError,
    PortUnavailableError,
    ProtocolError,
    RuntimeUnavailableError,
    SandboxError,
    SandboxLostError,
    UnavailableError,
)
from yaosb_jupyter.options import CreateOptions, PortMapping, TerminalSize
from yaosb_jupyter.types import (
    CommandInfo,
    Copied,
    CopyProgress,
    Desktop,
    ExecResult,
    Exit,
    ExitStatus,
    FileInfo,
    Isolation,
    ListFilter,
    LogChunk,
    Output,
    PoolInfo,
    PoolLimits,
    PoolSpec,
    PoolTimeouts,
    ProxyHealth,
    PullProgress,
    SandboxInfo,
    SandboxStats,
    ServerEvent,
)

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from yaosb_jupyter.blocking.attachment import Attachment
    from yaosb_jupyter.blocking.command import Command
    from yaosb_jupyter.blocking.entry import connect, init, manager
    from yaosb_jupyter.blocking.manager import Manager
    from yaosb_jupyter.blocking.path import SandboxPath
    from yaosb_jupyter.blocking.sandbox import Sandbox
    from yaosb_jupyter.blocking.stream import CommandStream
    from yaosb_jupyter.core.commands.background import AsyncCommand
    from yaosb_jupyter.core.files.path import AsyncSandboxPath
    from yaosb_jupyter.core.manager import AsyncManager
    from yaosb_jupyter.core.sandbox import AsyncSandbox
    from yaosb_jupyter.daemon.connect import connect_async
    from yaosb_jupyter.settings import Settings, load_settings
    from yaosb_jupyter.tai.connect.base import AsyncAttachment

    __version__: str

_HOME = {
    "AsyncAttachment": "tai.connect.base",
    "AsyncCommand": "core.commands.background",
    "AsyncManager": "core.manager",
    "AsyncSandbox": "core.sandbox",
    "AsyncSandboxPath": "core.files.path",
    "Attachment": "blocking.attachment",
    "Command": "blocking.command",
    "CommandStream": "blocking.stream",
    "Manager": "blocking.manager",
    "Sandbox": "blocking.sandbox",
    "SandboxPath": "blocking.path",
    "Settings": "settings",
    "__version__": "version",
    "connect": "blocking.entry",
    "connect_async": "daemon.connect",
    "init": "blocking.entry",
    "load_settings": "settings",
    "manager": "blocking.entry",
}

__all__ = [
    "AlreadyExistsError",
    "AsyncAttachment",
    "AsyncCommand",
    "AsyncManager",
    "AsyncSandbox",
    "AsyncSandboxPath",
    "Attachment",
    "AuthError",
    "Command",
    "CommandInfo",
    "CommandNotFoundError",
    "CommandStream",
    "Copied",
    "CopyProgress",
    "CreateOptions",
    "DataDirectoryBusyError",
    "Desktop",
    "ExecChannel",
    "ExecError",
    "ExecFailedError",
    "ExecResult",
    "ExecTimeoutError",
    "Exit",
    "ExitStatus",
    "FileInfo",
    "ImageNotFoundError",
    "InvalidOptionError",
    "Isolation",
    "Lifecycle",
    "LimitExceededError",
    "ListFilter",
    "LogChunk",
    "Manager",
    "Network",
    "NotAvailableError",
    "NotFoundError",
    "NotRunningError",
    "Output",
    "OutputLimitExceededError",
    "PathError",
    "PathExistsError",
    "PathIsDirectoryError",
    "PathLinkError",
    "PathNotDirectoryError",
    "PathNotFoundError",
    "PermissionDeniedError",
    "PoolInUseError",
    "PoolInfo",
    "PoolLimits",
    "PoolNotFoundError",
    "PoolSpec",
    "PoolTimeouts",
    "PortMapping",
    "PortUnavailableError",
    "ProtocolError",
    "ProxyHealth",
    "PullProgress",
    "RuntimeUnavailableError",
    "Sandbox",
    "SandboxError",
    "SandboxInfo",
    "SandboxLostError",
    "SandboxPath",
    "SandboxStats",
    "ServerEvent",
    "Settings",
    "Status",
    "TerminalSize",
    "UnavailableError",
    "VncStatus",
    "__version__",
    "connect",
    "connect_async",
    "init",
    "load_settings",
    "manager",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: InteractiveShell) -> None:
    """``%load_ext yaosb_jupyter``"""
    from yaosb_jupyter.jupyter.extension import load_ipython_extension as load

    load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """``%unload_ext yaosb_jupyter``"""
    from yaosb_jupyter.jupyter.extension import unload_ipython_extension as unload

    unload(shell)
