"""Building images on an engine, and pushing them to a registry."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import IO, Any

from yaosb_jupyter.errors import ProtocolError, RuntimeUnavailableError, SandboxError, UnavailableError
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.failures import NO_REGISTRY
from yaosb_jupyter.tai.runtimes.docker.http import PIECE
from yaosb_jupyter.tai.runtimes.docker.images import registry_authorization, split_reference

_LAST_LINES = 12
_WRONG_MACHINE = re.compile(r"exec format error|does not match the specified platform|no matching manifest", re.I)

Say = Callable[[str], None]


class Builds:
    """Builds on one engine, by its own builder: it needs no plug-in, and knows the images that are there."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def check_platform(self, image: str, platform: str) -> None:
        """Removes an image that was made of another platform's, which not every builder refuses.

        Raises `UnavailableError`.
        """
        found = await self._engine.call(lambda client: client.inspect_image(image))  # type: ignore[no-untyped-call]
        actual = f"{found['Os']}/{found['Architecture']}"
        if actual != platform:
            await self._engine.call(lambda client: client.remove_image(image))
            raise build_error(image, f"its base does not match the specified platform, but is {actual}", [], platform)

    async def size(self, image: str) -> int:
        """Bytes, layers shared with others included."""
        found = await self._engine.call(lambda client: client.inspect_image(image))  # type: ignore[no-untyped-call]
        return int(found["Size"])

    async def platform(self) -> str:
        """What the engine's own machine is, as ``linux/amd64``."""
        version = await self._engine.call(lambda client: client.version())
        return f"{version['Os']}/{version['Arch']}"

    async def build(
        self, tag: str, context: IO[bytes], *, arguments: Mapping[str, str], platform: str, say: Say
    ) -> None:
        """Builds the tar in ``context`` as ``tag``, telling each line that comes; cancelled, the engine stops too.

        Raises `UnavailableError` with the last that was said.
        """
        query = {"t": tag, "buildargs": json.dumps(dict(arguments)), "rm": "1", "forcerm": "1", "version": "1"}
        if platform:
            query["platform"] = platform
        target = self._engine.target("build", **query)
        headers = {"Content-Type": "application/x-tar"}
        said: list[str] = []
        try:
            async with self._engine.stream("POST", target, headers=headers, body=_pieces(context)) as response:
                async for line in response.lines():
                    message = json.loads(line)
                    _check(message)
                    for text in str(message.get("stream", "")).splitlines():
                        if text.strip():
                            said = [*said[1 - _LAST_LINES :], text.rstrip()]
                            say(text.rstrip())
        except (RuntimeUnavailableError, ProtocolError):
            raise
        except SandboxError as error:
            raise build_error(tag, error.message, said, platform) from error

    async def tag(self, image: str, name: str) -> None:
        repository, tag = split_reference(name)
        await self._engine.call(lambda client: client.tag(image, repository, tag, force=True))

    async def push(self, name: str, say: Say) -> None:
        """Pushes to the registry that ``name`` names. Raises `UnavailableError` with what the registry says."""
        repository, tag = split_reference(name)
        headers = await self._engine.call(lambda client: registry_authorization(client, repository))
        headers = headers or {"X-Registry-Auth": "e30="}  # an empty object: the header itself must be there
        target = f"{self._engine.target('images')}/{repository}/push?tag={tag}"
        shown = ""
        try:
            async with self._engine.stream("POST", target, headers=headers) as response:
                async for line in response.lines():
                    message = json.loads(line)
                    _check(message)
                    text = f"{message.get('id', '')} {message.get('status', '')}".strip()
                    if text and text != shown:
                        shown = text
                        say(text)
        except UnavailableError as error:
            hint = "docker login, or check the registry's name"
            raise UnavailableError(f"{name} could not be pushed: {error.message}", hint=hint) from error


def build_error(tag: str, message: str, said: list[str], platform: str) -> SandboxError:
    """Why a build failed, in words for people."""
    words = "\n".join(["", *said, message])
    if platform and _WRONG_MACHINE.search(words):
        return UnavailableError(
            f"{tag} was not built: this engine cannot run programs of {platform}, or has no image for it: {message}",
            hint="build it on such a machine, or give this one emulation (Debian: qemu-user-static) and "
            f"debian:bookworm-slim for {platform}",
        )
    if NO_REGISTRY.search(message):
        return UnavailableError(
            f"{tag} could not be built: {message}", hint="it is made from debian:bookworm-slim: load that by hand"
        )
    return UnavailableError(f"{tag} could not be built: {words}")


def _check(message: Mapping[str, Any]) -> None:
    if "error" in message:
        raise UnavailableError(str(message["error"]))


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(file.read, PIECE):
        yield piece
