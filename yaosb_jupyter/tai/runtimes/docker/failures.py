"""The engine's errors as ours, at one edge."""

from __future__ import annotations

import re

from yaosb_jupyter.errors import (
    AlreadyExistsError,
    CommandNotFoundError,
    ImageNotFoundError,
    InvalidOptionError,
    NotFoundError,
    NotRunningError,
    RuntimeUnavailableError,
    SandboxError,
    UnavailableError,
)
from yaosb_jupyter.link.exec import no_more_processes

_NOT_RUNNING = re.compile(
    r"is not running|is paused|is restarting|is not started|cannot exec in a stopped|marked for removal"
)
NO_COMMAND = re.compile(
    r"executable file not found|exec format error|permission denied|no such file or directory: unknown"
)
"""In the message of a start that was refused: the main process cannot be run."""
NO_REGISTRY = re.compile(
    r"no such host|connection refused|i/o timeout|timeout exceeded|network is unreachable|no route to host|"
    r"connection reset|server misbehaving|context deadline exceeded|TLS handshake|tls: |x509|EOF|proxyconnect"
)
_NO_IMAGE = re.compile(
    r"manifest unknown|not found|does not exist|name unknown|no matching manifest|access denied", re.I
)
_NOT_STARTED = re.compile(
    r"executable file not found|no such file or directory|permission denied|not a directory|"
    r"unable to find (?:user|group)|exec format error|is a directory|no matching entries"
)
_NO_PROCESSES = re.compile(r"read init-p: connection reset|resource temporarily unavailable|cannot fork")
"""The first is how the engine's own process inside tells that it was refused another one."""
_NO_DIRECTORY = re.compile(r'chdir to cwd \("(?P<path>.*)"\) set in config.json failed: (?P<why>[^:]*)')
_BAD_NAME = re.compile(r"invalid reference format|must be lowercase|invalid tag format|invalid repository name", re.I)


def api_error(status: int, message: str, sandbox: str | None = None) -> SandboxError:
    """What an HTTP error of the engine means for the caller."""
    text = message.strip()
    if status == 404:
        if "no such image" in text.lower():
            return ImageNotFoundError(text, sandbox=sandbox, hint="pull it first: %sandbox pull IMAGE")
        return NotFoundError(text, sandbox=sandbox)
    if status == 409:
        if _NOT_RUNNING.search(text):
            return NotRunningError(text, sandbox=sandbox, hint="start it first")
        return AlreadyExistsError(text, sandbox=sandbox)
    if status == 400:
        return InvalidOptionError(text, sandbox=sandbox)
    if _NOT_RUNNING.search(text):
        return NotRunningError(text, sandbox=sandbox, hint="start it first")
    if "port is already allocated" in text or "address already in use" in text:
        return InvalidOptionError(f"ports: {text}", sandbox=sandbox, hint="choose another host port, or 0 for any")
    return RuntimeUnavailableError(f"the engine refused: {text}", sandbox=sandbox)


def pull_error(image: str, message: str, status: int = 0) -> SandboxError:
    """Why a pull failed: a bad name, a registry that does not answer, or no such image there."""
    text = message.strip()
    if _BAD_NAME.search(text) or status == 400:
        return InvalidOptionError(
            f"image {image!r} is not a valid name: {text}", hint="accepted: [REGISTRY/]NAME[:TAG], lower case"
        )
    if NO_REGISTRY.search(text):
        return RuntimeUnavailableError(
            f"the registry of {image!r} does not answer: {text}",
            hint="check the engine's network; an image of ours needs no registry: yaosb image build base",
        )
    if _NO_IMAGE.search(text) or status == 404:
        return ImageNotFoundError(f"there is no image {image!r}: {text}", hint="check its name and tag")
    return RuntimeUnavailableError(f"{image!r} could not be pulled: {text}")


def start_error(message: str, sandbox: str) -> SandboxError:
    """Why an engine exec did not start, as the engine says in place of its output."""
    if _NOT_RUNNING.search(message):
        return NotRunningError(message, sandbox=sandbox, hint="start it first")
    if _NO_PROCESSES.search(message):
        return no_more_processes(message, sandbox)
    if not _NOT_STARTED.search(message):
        return UnavailableError(f"the engine could not start the command: {message}", sandbox=sandbox)
    code, hint = (126 if "permission denied" in message else 127), None
    if 'exec: "sh"' in message:
        hint = "the image has no sh, which running commands needs"
    elif directory := _NO_DIRECTORY.search(message):
        code, hint = 126, "make the directory, mend its rights, or choose another cwd"
        message = f"working directory {directory['path']}: {directory['why']}"
    elif "passwd file" in message or "unable to find" in message:
        hint = "name a user that the image has, or UID or UID:GID"
    return CommandNotFoundError(message, exit_code=code, sandbox=sandbox, hint=hint)


def unreachable(address: object, cause: object) -> RuntimeUnavailableError:
    """The engine does not answer."""
    return RuntimeUnavailableError(
        f"the Docker engine at {address} does not answer: {cause}",
        hint="start it, check DOCKER_HOST and your right to its socket, or use the pool address 'embedded'",
    )
