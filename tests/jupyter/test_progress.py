from __future__ import annotations

from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from yaosb_jupyter.core.files.copies import Step
from yaosb_jupyter.jupyter.events import Progress
from yaosb_jupyter.jupyter.progress import CopyMeter, ProgressDisplay, PullLayers, progress_html, progress_text
from yaosb_jupyter.types import CopyProgress, PullProgress

MIB = 2**20


def test_j9_a_pull_is_told_by_layers() -> None:
    layers = PullLayers("python:3.12")
    assert (
        layers.add(PullProgress(layer="", status="Pulling from library/python")).words == "Pulling from library/python"
    )
    layers.add(PullProgress(layer="aaa", status="Downloading", current=10 * MIB, total=10 * MIB))
    progress = layers.add(PullProgress(layer="bbb", status="Downloading", current=5 * MIB, total=30 * MIB))
    assert progress.share == 15 / 40
    assert progress.words == "15 MiB of 40 MiB in 2 layers"
    assert progress.lines == ["bbb  Downloading  5 MiB of 30 MiB"]
    assert "python:3.12" in progress_text(progress)
    assert "width:37.5%" in progress_html(progress)


def test_what_an_engine_says_is_escaped() -> None:
    progress = PullLayers("<b>").add(PullProgress(layer="", status="<script>\x1b[2J"))
    assert "<script>" not in progress_html(progress)
    assert "\x1b" not in progress_text(progress)


def step(done: int, total: int, *, number: int = 1, files: int = 0, path: str = "") -> Step:
    return Step(
        source="a", number=number, count=2, progress=CopyProgress(path=path, done=done, total=total, files=files)
    )


def test_a_copy_without_a_size_has_no_share() -> None:
    assert CopyMeter().add(step(0, 0)).share is None
    assert CopyMeter().add(step(9, 3)).share == 1.0  # it grew meanwhile


def test_a_copy_tells_bytes_files_rate_and_what_is_left() -> None:
    now = [5.0]
    meter = CopyMeter(lambda: now[0])
    assert meter.add(step(0, 100 * MIB)).words == "0 B of 100 MiB"
    now[0] = 7.0
    told = meter.add(step(40 * MIB, 100 * MIB, files=1, path="dir/<b>"))
    assert told.task == "copying a (1 of 2)"
    assert told.words == "40 MiB of 100 MiB, 1 file, 20 MiB/s, 3.0 s left"
    assert "<b>" not in progress_html(told)
    now[0] = 9.0
    assert meter.add(step(MIB, 8 * MIB, number=2)).words == "1 MiB of 8 MiB"  # the rate is that of each source


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


@pytest.mark.usefixtures("shell")
def test_progress_is_shown_after_a_moment_not_too_often_and_replaced_at_the_end() -> None:
    now = [0.0]
    display = ProgressDisplay(clock=lambda: now[0])
    with capture_output() as shown:
        for tenth in range(20):
            now[0] = tenth / 10
            display.show(Progress(task="copying", share=tenth / 20))
        display.close("copied")
    texts = [output.data["text/plain"] for output in shown.outputs]
    assert 5 <= len(texts) <= 10
    assert texts[0] == "copying  15%"
    assert texts[-1] == "copied"


@pytest.mark.usefixtures("shell")
def test_what_is_quick_shows_its_summary_only() -> None:
    display = ProgressDisplay(clock=lambda: 0.0)
    with capture_output() as shown:
        display.show(Progress(task="copying", share=0.5))
        display.close("copied")
    assert [output.data["text/plain"] for output in shown.outputs] == ["copied"]
