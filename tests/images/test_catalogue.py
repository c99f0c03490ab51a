"""What images are called, and what their builds are given."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from yaosb_jupyter.errors import InvalidOptionError, NotFoundError
from yaosb_jupyter.images import catalogue
from yaosb_jupyter.images.catalogue import BASE, DATA, IMAGES, TEST, Image, image_named
from yaosb_jupyter.images.context import write_context
from yaosb_jupyter.images.platforms import Platform


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The images' files where they may be changed, with nothing remembered of their tags."""
    for image in IMAGES.values():
        (tmp_path / image.name).mkdir()
        for name, path in image.files.items():
            (tmp_path / image.name / name).write_bytes(path.read_bytes())
    monkeypatch.setattr(catalogue, "_HERE", tmp_path)
    monkeypatch.setattr(catalogue, "_digest", catalogue._digest.__wrapped__)
    return tmp_path


def test_a_tag_tells_the_content_and_that_of_what_is_below(copied: Path) -> None:
    before = {name: image.tag for name, image in IMAGES.items()}
    assert before == {name: image.tag for name, image in IMAGES.items()}
    (copied / "test" / "nginx.conf").write_text("another")
    assert [name for name, image in IMAGES.items() if image.tag != before[name]] == ["test"]
    (copied / "base" / "entrypoint").write_text("another")
    assert all(image.tag != before[name] for name, image in IMAGES.items())


def test_a_tag_does_not_tell_where_the_files_are(copied: Path) -> None:
    elsewhere = {name: image.tag for name, image in IMAGES.items()}
    program = "from yaosb_jupyter.images.catalogue import IMAGES; print(*(image.tag for image in IMAGES.values()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == list(elsewhere.values())


@pytest.mark.parametrize("image", IMAGES.values(), ids=IMAGES)
def test_a_tag_can_be_one(image: Image) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", image.tag)
    assert image.full_name == f"yaosb/sandbox-{image.name}:{image.tag}"


def test_what_is_below_is_built_first() -> None:
    assert DATA.lineage == (BASE, DATA)
    assert BASE.lineage == (BASE,)


def test_an_unknown_image_is_told_with_those_there_are() -> None:
    with pytest.raises(NotFoundError, match="base, test, desktop, data"):
        image_named("nope")


def test_a_context_is_the_same_for_the_same_files(copied: Path, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "a.whl").write_bytes(b"a wheel")
    first, second = io.BytesIO(), io.BytesIO()
    write_context(TEST, wheels, first)
    for path in (copied / "test").iterdir():
        path.touch()
        path.chmod(0o600)
    write_context(TEST, wheels, second)
    assert first.getvalue() == second.getvalue()
    first.seek(0)
    with tarfile.open(fileobj=first) as tar:
        modes = {entry.name: entry.mode for entry in tar}
    assert modes["service"] == 0o755
    assert modes["nginx.conf"] == 0o644
    assert "wheels/a.whl" in modes
    assert "requirements.in" not in modes


@pytest.mark.parametrize("text", ["linux/arm64", "arm64", "aarch64", "linux/arm64/v8"])
def test_platforms_by_their_names(text: str) -> None:
    platform = Platform.parse(text)
    assert str(platform) == "linux/arm64"
    assert "manylinux_2_17_aarch64" in platform.wheel_tags


@pytest.mark.parametrize("text", ["", "linux/mips", "windows/amd64"])
def test_other_platforms_are_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="linux/amd64, linux/arm64"):
        Platform.parse(text)


@pytest.mark.parametrize(
    "image", [image for image in IMAGES.values() if image.requirements], ids=lambda image: image.name
)
def test_each_package_is_pinned_with_its_hashes(image: Image) -> None:
    assert image.requirements is not None
    pins = [line for line in image.requirements.read_text().splitlines() if re.match(r"[a-z]", line)]
    assert pins
    assert all(re.fullmatch(r"[a-z0-9_.-]+==[^ ]+ \\", pin) for pin in pins)
