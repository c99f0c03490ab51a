from __future__ import annotations

from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from yaosb_jupyter.jupyter.events import Progress
from yaosb_jupyter.jupyter.progress import ProgressDisplay, PullLayers, copy_progress, progress_html, progress_text
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


def test_a_copy_without_a_size_has_no_share() -> None:
    assert copy_progress("a", CopyProgress(path="a", done=0, total=0)).share is None
    assert copy_progress("a", CopyProgress(path="a", done=9, total=3)).share == 1.0  # it grew meanwhile


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
