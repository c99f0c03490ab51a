"""What `import yaosb_jupyter` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import yaosb_jupyter
from yaosb_jupyter.wire.errors import CODES


def test_the_exports_are_sorted_and_there() -> None:
    assert sorted(yaosb_jupyter.__all__) == yaosb_jupyter.__all__
    for name in yaosb_jupyter.__all__:
        assert getattr(yaosb_jupyter, name) is not None
    assert set(yaosb_jupyter.__all__) <= set(dir(yaosb_jupyter))


def test_everything_public_is_exported() -> None:
    hooks = {"load_ipython_extension", "unload_ipython_extension"}
    parts = {"annotations", "importlib", "TYPE_CHECKING", "Any", "InteractiveShell"}
    loaded = {name for name in vars(yaosb_jupyter) if f"yaosb_jupyter.{name}" in sys.modules}
    public = {name for name in vars(yaosb_jupyter) if not name.startswith("_")} | {"__version__"}
    for name in yaosb_jupyter.__all__:
        getattr(yaosb_jupyter, name)
    assert public - hooks - parts - loaded <= set(yaosb_jupyter.__all__)
    assert set(yaosb_jupyter.__all__) - set(yaosb_jupyter._HOME) <= public


def test_every_error_is_exported() -> None:
    assert set(CODES) <= set(yaosb_jupyter.__all__)


def test_what_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(yaosb_jupyter, "nothing")


COST = """
import IPython, sys, time
before = set(sys.modules)
start = time.process_time()
import yaosb_jupyter
print(time.process_time() - start, *sorted(set(sys.modules) - before))
"""
HEAVY = {"msgspec", "yaml", "docker", "grpc", "ipywidgets", "anyio", "yaosb_jupyter.core"}


def test_the_import_costs_less_than_50_ms_over_ipython() -> None:
    costs = []
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", COST], capture_output=True, text=True, check=True, timeout=60)
        cost, *modules = done.stdout.split()
        costs.append(float(cost))
        assert not HEAVY & set(modules)
    assert min(costs) < 0.05
