"""Containers are removed whatever else happens to them: the engine refuses for a moment then, and no longer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import pytest

from tests.docker.conftest import MakeBox
from yaosb_jupyter.errors import AlreadyExistsError, NotFoundError, SandboxError, UnavailableError
from yaosb_jupyter.tai.runtimes.docker import DockerRuntime, containers
from yaosb_jupyter.tai.runtimes.docker.containers import discard, remove_container
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.failures import api_error

if TYPE_CHECKING:
    from docker import APIClient

pytestmark = pytest.mark.docker
_T = TypeVar("_T")

ENDED_MEANWHILE = "Could not kill running container 5d64, cannot remove - Container 5d64 is not running"
REMOVED_MEANWHILE = "removal of container 5d64 is already in progress"


class RefusingEngine(Engine):
    """Stands in for the moments that cannot be arranged: refuses as the engine does then, and asks the real one after.

    Without a real one it refuses for ever.
    """

    def __init__(self, real: Engine | None, *refusals: SandboxError) -> None:
        self._real = real
        self._refusals = list(refusals)

    async def call(self, function: Callable[[APIClient], _T], *, sandbox: str | None = None) -> _T:
        if self._real is None:
            raise self._refusals[0]
        if self._refusals:
            raise self._refusals.pop()
        return await self._real.call(function, sandbox=sandbox)


def refusals() -> list[SandboxError]:
    return [api_error(409, ENDED_MEANWHILE), api_error(409, REMOVED_MEANWHILE), api_error(500, ENDED_MEANWHILE)]


@pytest.mark.parametrize("removing", [remove_container, discard])
async def test_one_that_ends_by_itself_meanwhile_is_removed(
    removing: Callable[..., object], runtime: DockerRuntime, make_box: MakeBox
) -> None:
    box = await make_box(runtime)
    await removing(RefusingEngine(runtime._engine, *refusals()), box.runtime_id)  # type: ignore[misc]
    with pytest.raises(NotFoundError):
        await runtime.inspect(box.runtime_id)


async def test_one_that_is_gone_is_removed_already(runtime: DockerRuntime) -> None:
    await remove_container(runtime._engine, "f" * 64)


async def test_an_engine_that_goes_on_refusing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "_REMOVAL_SECONDS", 0.3)
    with pytest.raises(UnavailableError, match="does not come to an end"):
        await remove_container(RefusingEngine(None, AlreadyExistsError(REMOVED_MEANWHILE)), "5d64")
