"""Images: what they say of themselves, whether they are there, and pulling them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from yaosb_jupyter.errors import ImageNotFoundError, InvalidOptionError, RuntimeUnavailableError, SandboxError
from yaosb_jupyter.images.catalogue import BASE, ENTRYPOINT_LABEL, IMAGES, REPOSITORY, VNC_LABEL
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.failures import pull_error
from yaosb_jupyter.tai.runtimes.docker.spec import ImageFacts, port_of
from yaosb_jupyter.types import PullProgress

if TYPE_CHECKING:
    from docker import APIClient

DEFAULT_IMAGE = "python:3.12-slim"
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d+)?/)?"
_PATH = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_NAME = re.compile(rf"{_HOST}{_PATH}(?:/{_PATH})*(?::\w[\w.-]{{0,127}})?(?:@[A-Za-z0-9]+:[0-9a-f]{{32,}})?", re.ASCII)


class Images:
    """The images of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def facts(self, image: str) -> ImageFacts:
        """Raises `ImageNotFoundError` where it is not on the engine, `InvalidOptionError` for a bad name."""
        found = await self._engine.call(lambda client: client.inspect_image(check_name(image)))  # type: ignore[no-untyped-call]
        config = found.get("Config") or {}
        labels = config.get("Labels") or {}
        return ImageFacts(
            image_id=found["Id"],
            starter=labels.get(ENTRYPOINT_LABEL, ""),
            vnc_port=port_of(labels.get(VNC_LABEL, "")),
            entrypoint=tuple(config.get("Entrypoint") or ()),
            command=tuple(config.get("Cmd") or ()),
        )

    async def exists(self, image: str) -> bool:
        try:
            await self.facts(image)
        except (ImageNotFoundError, InvalidOptionError):
            return False
        return True

    async def default(self) -> str:
        """Ours where it was built, else one that can be pulled."""
        return BASE.short_name if await self.exists(BASE.short_name) else DEFAULT_IMAGE

    async def pull(self, image: str, progress: Callable[[PullProgress], None] | None) -> None:
        """Pulls, telling each layer's progress; cancelled, the engine stops too. Never an image of ours."""
        name, tag = split_reference(check_name(image))
        if name.startswith(f"{REPOSITORY}/"):  # whatever a public registry has by that name is not ours
            raise not_built(image)
        authorization = await self._engine.call(lambda client: registry_authorization(client, name))
        target = self._engine.target("images", "create", fromImage=name, tag=tag)
        try:
            async with self._engine.stream("POST", target, headers=authorization) as response:
                async for line in response.lines():
                    if line.strip():
                        _tell(json.loads(line), image, progress)
        except (InvalidOptionError, ImageNotFoundError) as error:
            raise pull_error(image, error.message, 400 if isinstance(error, InvalidOptionError) else 404) from error
        except RuntimeUnavailableError as error:
            if error.message.startswith("the engine refused: "):
                raise pull_error(image, error.message.removeprefix("the engine refused: ")) from error
            raise
        except SandboxError as error:
            raise pull_error(image, error.message) from error


def not_built(image: str) -> ImageNotFoundError:
    """For an image of ours, which is in no registry."""
    kind = split_reference(image)[0].partition("/sandbox-")[2]
    known = kind if kind in IMAGES else "NAME"
    return ImageNotFoundError(
        f"the image {image!r} is not on this engine", hint=f"build it in a shell: yaosb image build {known}"
    )


def check_name(image: str) -> str:
    """Raises `InvalidOptionError` for what cannot name an image; ids of images are names too."""
    if not _NAME.fullmatch(image):
        raise InvalidOptionError(f"image {image!r} is not a valid name", hint=f"for example {DEFAULT_IMAGE}")
    return image


def split_reference(image: str) -> tuple[str, str]:
    """Name and tag (or digest) of an image; the tag is ``latest`` where none is given."""
    name, at, digest = image.partition("@")
    if at:
        return name, digest
    head, colon, tag = name.rpartition(":")
    return (head, tag) if colon and "/" not in tag else (name, "latest")


def _tell(message: Mapping[str, Any], image: str, progress: Callable[[PullProgress], None] | None) -> None:
    if "error" in message:
        raise pull_error(image, str(message["error"]))
    if progress is not None:
        detail = message.get("progressDetail") or {}
        progress(
            PullProgress(
                layer=str(message.get("id", "")),
                status=str(message.get("status", "")),
                current=int(detail.get("current") or 0),
                total=int(detail.get("total") or 0),
            )
        )


def registry_authorization(client: APIClient, name: str) -> dict[str, str]:
    """What the user's Docker configuration says for the image's registry, credential helpers included."""
    from docker import auth
    from docker.errors import DockerException

    try:
        registry, _ = auth.resolve_repository_name(name)
        header = auth.get_config_header(client, registry)
    except DockerException:
        return {}  # a bad name: the engine says what is wrong with it
    if not header:
        return {}
    return {"X-Registry-Auth": header.decode() if isinstance(header, bytes) else str(header)}
