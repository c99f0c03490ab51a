"""What a runtime cannot give is said, not shown as given."""

from __future__ import annotations

import pytest

from tests.manager.conftest import OpenManager
from tests.manager.rigs import DockerRig, EmbeddedRig
from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.errors import InvalidOptionError

IMAGE = "nope/none:1"


@pytest.mark.embedded
@pytest.mark.parametrize("rig", [EmbeddedRig], indirect=True)
async def test_embedded_says_that_it_has_no_images(manager: AsyncManager) -> None:
    with pytest.raises(InvalidOptionError, match="no images"):
        await manager.pull_image(IMAGE)
    assert not await manager.image_exists(IMAGE)
    for make in (manager.create, manager.get_or_create):
        info = (await make("lab", image=IMAGE, vnc=True, start=False)).last_info
        assert (info.image, info.vnc) == ("host", False)
        assert any(IMAGE in warning for warning in info.warnings)
        assert any("vnc" in warning for warning in info.warnings)


async def test_a_desktop_that_is_not_there_is_not_told_as_there(open_on_memory: OpenManager) -> None:
    manager = await open_on_memory()
    info = (await manager.create("lab", vnc=True)).last_info
    assert not info.vnc
    assert info.warnings == ("vnc: there is no desktop, since memory has none to show",)
    assert (await manager.create("plain")).last_info.warnings == ()


@pytest.mark.docker
@pytest.mark.parametrize("rig", [DockerRig], indirect=True)
async def test_what_a_sandbox_is_kept_from_is_told_of_that_sandbox(manager: AsyncManager) -> None:
    plain = (await manager.create("plain")).last_info.isolation
    rooted = (await manager.create("rooted", user="root", network="none")).last_info.isolation
    assert plain is not None
    assert rooted is not None
    assert "ROOT" not in plain.means
    assert ("ROOT" in rooted.means, rooted.internet) == (True, "none")
