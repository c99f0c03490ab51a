"""Images: there or not, pulled or not; runtimes without images take any name."""

from __future__ import annotations

import pytest

from tests.contract.conftest import MakeBox, MakeSpec
from tests.contract.hosts import Host
from yaosb_jupyter.errors import ImageNotFoundError, InvalidOptionError, RuntimeUnavailableError
from yaosb_jupyter.tai.runtimes.base import Capability, Runtime, RuntimeInfo

MISSING = "yaosb.invalid/no-such-image:1"


async def test_the_image_of_an_environment_exists(host: Host, runtime: Runtime) -> None:
    assert await runtime.image_exists(host.image)


async def test_a_missing_image_is_told_and_leaves_nothing(
    runtime: Runtime, make_spec: MakeSpec, make_box: MakeBox, info: RuntimeInfo, labels: dict[str, str]
) -> None:
    if Capability.IMAGES in info.capabilities:
        assert not await runtime.image_exists(MISSING)
        with pytest.raises(ImageNotFoundError, match="no-such-image"):
            await runtime.create(make_spec(image=MISSING))
        assert await runtime.list(labels) == []
    else:
        box = await make_box(image=MISSING)
        assert (await box.sh("echo up")).stdout == b"up\n"


async def test_an_image_that_cannot_be_pulled_is_told(runtime: Runtime, info: RuntimeInfo) -> None:
    if Capability.IMAGES in info.capabilities:
        with pytest.raises((ImageNotFoundError, RuntimeUnavailableError)):
            await runtime.pull_image(MISSING)
    else:
        await runtime.pull_image(MISSING)


@pytest.mark.parametrize("name", ["", "Upper/Case", "spaces in it", "a//b", "tag:", "-x"])
async def test_a_bad_image_name_is_told(name: str, runtime: Runtime, info: RuntimeInfo) -> None:
    if Capability.IMAGES in info.capabilities:
        with pytest.raises(InvalidOptionError, match="image"):
            await runtime.pull_image(name)
    assert not await runtime.image_exists(name) or Capability.IMAGES not in info.capabilities
