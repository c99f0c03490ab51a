"""What README and docs/magics.md tell people to type is understood, and works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.jupyter.kernels import environment, stop_daemon
from yaosb_jupyter.jupyter.arguments import cell_parser, line_parser, sandbox_parser, write_parser
from yaosb_jupyter.settings import load_settings

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
MAGICS = (ROOT / "docs/magics.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def lines() -> list[str]:
    typed = [line for block in blocks("") for line in block.splitlines() if line.startswith("%")]
    return [*typed, *(found for found in re.findall(r"`(%[^`]+)`", README) if " " in found)]


@pytest.mark.parametrize("line", lines())
def test_every_magic_is_understood(line: str) -> None:
    name, _, rest = line.partition(" ")
    if name == "%sandbox" and not re.search(r"(^help| -h)", rest):
        assert sandbox_parser().parse_line(rest).verb
    elif name == "%%sbexec":
        cell_parser().parse_line(rest)
    elif name == "%%sbwrite":
        write_parser().parse_line(rest)
    elif name == "%sbexec":
        assert line_parser().parse_leading(rest)[1]
    else:
        assert name in ("%load_ext", "%sandbox")


def test_the_example_in_python_runs(tmp_path: Path) -> None:
    (example,) = blocks("python")
    env = {**os.environ, **environment(tmp_path, "memory://readme")}
    try:
        done = subprocess.run([sys.executable, "-c", example], env=env, capture_output=True, text=True, timeout=60)
    finally:
        stop_daemon(tmp_path, "memory://readme")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("42\n")
    assert done.stdout.count("Output(") == 3
    assert "Exit(" in done.stdout


def test_the_example_of_a_configuration_is_accepted(tmp_path: Path) -> None:
    (example,) = blocks("yaml")
    file = tmp_path / "yaosb.yaml"
    file.write_text(example)
    settings = load_settings(file=file, environ={}, data_dir=tmp_path)
    assert [pool.name for pool in settings.pools] == ["here", "big", "quick"]
    assert settings.pools[0].limits.max_total == 20


def test_every_flag_and_verb_is_told() -> None:
    parser = sandbox_parser()
    flags = {flag for flag in parser.verbs["create"].options if flag.startswith("--")} - {"--help"}
    flags |= {flag for flag in line_parser().options if flag.startswith("--")} - {"--help", "--out"}
    assert {flag for flag in flags if f"`{flag}" not in MAGICS} == set()
    assert {verb for verb in parser.verbs if f"`{verb}" not in MAGICS} == set()
