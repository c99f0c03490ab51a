"""What a runtime cannot do, it refuses by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.box import Box
from tests.contract.hosts import Host, host_of, hosts
from yaosb_jupyter.errors import NotAvailableError
from yaosb_jupyter.options import ExecOptions


@pytest.fixture(params=hosts("memory", "docker-engine"))
def host(request: pytest.FixtureRequest, directory: Path) -> Iterator[Host]:
    yield from host_of(request.param, directory)


async def test_commands_that_cannot_be_taken_up_again(box: Box) -> None:
    for call in (
        box.runtime.spawn(box.runtime_id, ExecOptions(argv=("true",))),
        box.runtime.commands(box.runtime_id),
        box.runtime.attach(box.runtime_id, "x"),
        box.runtime.control(box.runtime_id, "x", grace=0),
    ):
        with pytest.raises(NotAvailableError) as caught:
            await call
        assert caught.value.hint
