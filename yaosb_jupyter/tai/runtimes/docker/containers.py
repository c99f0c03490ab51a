"""A container made and removed: also when cancelled, and whatever else happens to it meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from yaosb_jupyter.errors import AlreadyExistsError, NotFoundError, NotRunningError, SandboxError, UnavailableError
from yaosb_jupyter.tai.runtimes.docker.engine import Engine

_REMOVAL_SECONDS = 10.0
_AGAIN_SECONDS = 0.1


async def create_container(engine: Engine, body: dict[str, Any], name: str | None = None) -> str:
    """The new container's id. Cancelled while the engine works on it, what was made is removed."""
    making = asyncio.ensure_future(
        engine.call(lambda client: client.create_container_from_config(body, name), sandbox=name)  # type: ignore[no-untyped-call]
    )
    try:
        made = await asyncio.shield(making)
    except asyncio.CancelledError:
        with suppress(SandboxError):
            await discard(engine, str((await making)["Id"]))
        raise
    return str(made["Id"])


async def create_started(engine: Engine, body: dict[str, Any], archive: bytes = b"") -> str:
    """Creates and starts a container; leaves nothing behind where that fails or is cancelled."""
    container = await create_container(engine, body)
    try:
        if archive:
            await engine.call(lambda client: client.put_archive(container, "/", archive))
        await engine.call(lambda client: client.start(container))
    except BaseException:
        await discard(engine, container)
        raise
    return container


async def remove_container(engine: Engine, container: str) -> None:
    """Removes it by force, with its anonymous volumes. No-op when gone.

    The engine refuses while another removes it, and where it ends by itself just as it is to be killed; no event
    tells when that is over. Raises `UnavailableError` if it goes on refusing.
    """
    try:
        async with asyncio.timeout(_REMOVAL_SECONDS):
            while True:
                try:
                    await engine.call(
                        lambda client: client.remove_container(container, force=True, v=True), sandbox=container
                    )
                except (AlreadyExistsError, NotRunningError):
                    await asyncio.sleep(_AGAIN_SECONDS)
                else:
                    return
    except NotFoundError:
        return
    except TimeoutError as error:
        raise UnavailableError("the engine does not come to an end with removing it", sandbox=container) from error


async def discard(engine: Engine, container: str) -> None:
    """Removes a container, to the end even when cancelled."""
    removing = asyncio.ensure_future(remove_container(engine, container))
    try:
        await asyncio.shield(removing)
    except asyncio.CancelledError:
        await asyncio.wait([removing])
        raise
